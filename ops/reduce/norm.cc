#include <algorithm>
#include <utility>
#include <vector>

#include "ops/kernels/signature.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

TensorMeta scalar() { return TensorMeta::contiguous(DType::kFloat32, {}); }

std::vector<TensorMeta> infer_norm(const OpQuery& query) {
  require_inputs(query, "norm", 1);
  require_dtype(query, "norm", 0, DType::kFloat32);
  return {scalar()};
}

std::vector<TensorMeta> infer_join_norms(const OpQuery& query) {
  if (query.inputs.empty() || query.inputs.size() > reduce::kMostNorms) {
    fail("join_norms", std::to_string(query.inputs.size()) + " norms, not 1 to " +
                           std::to_string(reduce::kMostNorms));
  }
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    require_dtype(query, "join_norms", i, DType::kFloat32);
    if (query.inputs[i].shape.elements() != 1) {
      fail("join_norms", "a norm of shape " + query.inputs[i].shape.to_string());
    }
  }
  return {scalar()};
}

OpCost cost(const OpQuery& query) { return streaming_cost(query, 2); }

}  // namespace

const OpDef kNorm = {
    .name = "norm", .infer = infer_norm, .cost = cost, .prepare = {reduce::prepare_norm_cpu}};
const OpDef kJoinNorms = {.name = "join_norms",
                          .infer = infer_join_norms,
                          .cost = cost,
                          .prepare = {simple_kernel<reduce::join_norms_cpu>}};

Tensor norm(const Tensor& x) { return dispatch1(kNorm, {x}); }

Tensor norm(std::span<const Tensor> tensors) {
  require(!tensors.empty(), "norm", "there are no tensors");
  std::vector<Tensor> norms;
  for (const Tensor& tensor : tensors) norms.push_back(norm(tensor));
  while (norms.size() > 1) {
    std::vector<Tensor> joined;
    for (size_t at = 0; at < norms.size(); at += reduce::kMostNorms) {
      const size_t count = std::min(reduce::kMostNorms, norms.size() - at);
      joined.push_back(
          std::move(dispatch(kJoinNorms, std::span(norms).subspan(at, count)).front()));
    }
    norms = std::move(joined);
  }
  return norms.front();
}

}  // namespace tidemark
