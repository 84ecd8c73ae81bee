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

void require_count(const char* op, const OpQuery& query, const char* what) {
  if (!query.inputs.empty() && query.inputs.size() <= reduce::kMaxNorms) return;
  fail(op, std::to_string(query.inputs.size()) + " " + what + ", not 1 to " +
               std::to_string(reduce::kMaxNorms));
}

std::vector<TensorMeta> infer_norm(const OpQuery& query) {
  require_count("norm", query, "tensors");
  require_floats(query, "norm", 0, query.inputs.size());
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    require(query.inputs.size() == 1 || query.inputs[i].is_contiguous(), "norm",
            "tensors must be contiguous if there are several");
  }
  return {scalar()};
}

std::vector<TensorMeta> infer_join_norms(const OpQuery& query) {
  require_count("join_norms", query, "norms");
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    require_dtype(query, "join_norms", i, DType::kFloat32);
    if (query.inputs[i].shape.elements() != 1) {
      fail("join_norms",
           "a norm must have one element, not shape " + query.inputs[i].shape.to_string());
    }
  }
  return {scalar()};
}

OpCost cost(const OpQuery& query) {
  OpCost cost = streaming_cost(query, 0);
  for (const TensorMeta& input : query.inputs) {
    cost.flops += 2 * static_cast<double>(input.shape.elements());
  }
  return cost;
}

}  // namespace

const OpDef kNorm = define_op("norm", infer_norm, cost, reduce::prepare_norm_cpu);
const OpDef kJoinNorms =
    define_op("join_norms", infer_join_norms, cost, simple_kernel<reduce::join_norms_cpu>);

Tensor norm(const Tensor& x) { return dispatch1(kNorm, {x}); }

Tensor norm(std::span<const Tensor> tensors) {
  return std::move(dispatch(kNorm, tensors).front());
}

Tensor join_norms(std::span<const Tensor> given) {
  require(!given.empty(), "join_norms", "there are no norms");
  std::vector<Tensor> norms(given.begin(), given.end());
  while (norms.size() > 1) {
    std::vector<Tensor> joined;
    for (size_t at = 0; at < norms.size(); at += reduce::kMaxNorms) {
      const size_t count = std::min(reduce::kMaxNorms, norms.size() - at);
      joined.push_back(
          std::move(dispatch(kJoinNorms, std::span(norms).subspan(at, count)).front()));
    }
    norms = std::move(joined);
  }
  return norms.front();
}

}  // namespace tidemark
