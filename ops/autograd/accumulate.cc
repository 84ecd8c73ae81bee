#include "ops/autograd/accumulate.h"

#include <string>

#include "ops/registry/dispatch.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer(const OpQuery& query) {
  const TensorMeta& a = query.inputs[0];
  const TensorMeta& b = query.inputs[1];
  if (a.shape != b.shape) {
    throw UsageError("[accumulate] gradients of the same tensor have shapes " +
                     a.shape.to_string() + " and " + b.shape.to_string());
  }
  if (a.dtype != b.dtype || (a.dtype != DType::kFloat32 && a.dtype != DType::kBFloat16)) {
    throw UsageError("[accumulate] gradients of the same tensor, of shape " +
                     a.shape.to_string() + ", are " + std::string(to_string(a.dtype)) +
                     " and " + std::string(to_string(b.dtype)));
  }
  return {TensorMeta::contiguous(a.dtype, a.shape)};
}

OpCost cost(const OpQuery& query) {
  const Bytes bytes = query.outputs[0].bytes();
  return {static_cast<double>(query.outputs[0].shape.elements()), bytes * 3, false};
}

}  // namespace

const OpDef kAccumulate{.name = "accumulate",
                        .infer = infer,
                        .cost = cost,
                        .may_overwrite = 0b11,
                        .prepare = {prepare_accumulate_cpu}};

Tensor accumulate(const Tensor& a, const Tensor& b) { return dispatch1(kAccumulate, {a, b}); }

}  // namespace tidemark
