#include "ops/kernels/launch_cuda.cuh"
#include "ops/norm/running_stats.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

__global__ void update_kernel(int64_t channels, float momentum, float unbiased,
                              float* running_mean, float* running_var, const float* mean,
                              const float* var) {
  const int64_t c = thread_index();
  if (c >= channels) return;
  running_mean[c] += momentum * (mean[c] - running_mean[c]);
  running_var[c] += momentum * (var[c] * unbiased - running_var[c]);
}

PreparedKernel prepare_update(const OpQuery& query) {
  return {Bytes(0), [channels = query.inputs[0].shape[0]](const KernelArgs& args) {
            launch(args, channels, update_kernel, channels, static_cast<float>(args.scalars[0]),
                   static_cast<float>(args.scalars[1]), args.inout<float>(0),
                   args.inout<float>(1), args.in<float>(2), args.in<float>(3));
          }};
}

}  // namespace

void register_running_stats_cuda() {
  set_kernel(kUpdateRunningStats, Backend::kCuda, prepare_update);
}

}  // namespace tidemark
