#include "ops/norm/running_stats.h"

#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

constexpr const char* kName = "update_running_stats_";

std::vector<TensorMeta> infer(const OpQuery& query) {
  check_float32(kName, query, {1, 1, 1, 1});
  for (size_t i = 1; i < 4; ++i) {
    check_fits(kName, query, query.inputs[i].shape == query.inputs[0].shape,
               "all must have one element for each channel");
  }
  return {};
}

OpCost cost(const OpQuery& query) {
  const TensorMeta& running = query.inputs[0];
  return {.flops = 7.0 * static_cast<double>(running.shape.elements()),
          .bytes_moved = 6 * running.bytes()};
}

}  // namespace

const OpDef kUpdateRunningStats{.name = kName,
                                .infer = infer,
                                .cost = cost,
                                .written_inputs = 0b11,
                                .prepare = {simple_kernel<update_running_stats_cpu>}};

void update_running_stats_(const Tensor& running_mean, const Tensor& running_var,
                           const Tensor& mean, const Tensor& var, double momentum,
                           int64_t count) {
  if (count < 2) {
    throw UsageError("[update_running_stats_] the unbiased variance of " +
                     std::to_string(count) + " value for each channel, of shape " +
                     mean.shape().to_string() + ", is undefined");
  }
  Scalars scalars{momentum, static_cast<double>(count) / static_cast<double>(count - 1)};
  dispatch(kUpdateRunningStats, {running_mean, running_var, contiguous(mean), contiguous(var)},
           {}, scalars);
}

}  // namespace tidemark
