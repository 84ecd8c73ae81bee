#include "ops/elementwise/inplace.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/functors.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/signature.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

// An element that several indices share would be written several times.
void require_writable(const char* op, const TensorMeta& target) {
  for (size_t d = 0; d < target.shape.rank(); ++d) {
    if (target.strides[d] == 0 && target.shape[d] > 1) {
      fail(op, "the target, of shape " + target.shape.to_string() + ", is an expanded view");
    }
  }
}

template <const OpDef* op>
std::vector<TensorMeta> infer_from_source(const OpQuery& query) {
  require_inputs(query, op->name, 2);
  const TensorMeta& target = query.inputs[0];
  const TensorMeta& source = query.inputs[1];
  require_dtype(query, op->name, 1, target.dtype);
  require_writable(op->name, target);
  if (!(broadcast(op->name, target.shape, source.shape) == target.shape)) {
    fail(op->name, "shape " + source.shape.to_string() +
                       " does not broadcast to the target's, " + target.shape.to_string());
  }
  return {};
}

std::vector<TensorMeta> infer_add(const OpQuery& query) {
  infer_from_source<&kAddInPlace>(query);
  require_dtype(query, kAddInPlace.name, 0, DType::kFloat32);
  return {};
}

std::vector<TensorMeta> infer_mul(const OpQuery& query) {
  require_inputs(query, kMulInPlace.name, 1);
  require_dtype(query, kMulInPlace.name, 0, DType::kFloat32);
  require_writable(kMulInPlace.name, query.inputs[0]);
  return {};
}

std::vector<TensorMeta> infer_fill(const OpQuery& query) {
  require_inputs(query, kFillInPlace.name, 1);
  require_writable(kFillInPlace.name, query.inputs[0]);
  require(query.inputs[0].dtype != DType::kFloat16, kFillInPlace.name,
          "no kernel for this type");
  return {};
}

template <const OpDef* op>
OpCost arithmetic_cost(const OpQuery& query) {
  return updating_cost(*op, query, 1);
}

// The old values are not read.
OpCost overwrite_cost(const OpQuery& query) { return streaming_cost(query, 0); }

PreparedKernel prepare_copy(const OpQuery& query) {
  return visit_size(query.inputs[0].dtype,
                    [&]<class T>(TypeTag<T>) { return update_cpu<Replace, T, T>(query); });
}

PreparedKernel prepare_fill(const OpQuery& query) {
  return visit_dtype(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) {
    return update_cpu<ReplaceByValue<T>, T>(query);
  });
}

}  // namespace

const OpDef kAddInPlace = {.name = "add_",
                           .infer = infer_add,
                           .cost = arithmetic_cost<&kAddInPlace>,
                           .written_inputs = 1,
                           .prepare = {update_cpu<Add, float, float>}};
const OpDef kMulInPlace = {.name = "mul_",
                           .infer = infer_mul,
                           .cost = arithmetic_cost<&kMulInPlace>,
                           .written_inputs = 1,
                           .prepare = {update_cpu<Scale, float>}};
const OpDef kCopyInPlace = {.name = "copy_",
                            .infer = infer_from_source<&kCopyInPlace>,
                            .cost = overwrite_cost,
                            .written_inputs = 1,
                            .prepare = {prepare_copy}};
const OpDef kFillInPlace = {.name = "fill_",
                            .infer = infer_fill,
                            .cost = overwrite_cost,
                            .written_inputs = 1,
                            .prepare = {prepare_fill}};

void require_no_grad(const char* op, std::initializer_list<Tensor> tensors) {
  if (!needs_grad(tensors)) return;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined() && requires_grad(tensor)) {
      fail(op, "a tensor of shape " + tensor.shape().to_string() +
                   " needs a gradient, and writing in place has none; use NoGrad");
    }
  }
}

namespace {

// Writes the first tensor of `tensors` in place.
Tensor write(const OpDef& op, std::initializer_list<Tensor> tensors, const Scalars& scalars) {
  require_no_grad(op.name, tensors);
  dispatch(op, tensors, {}, scalars);
  return *tensors.begin();
}

}  // namespace

Tensor add_(const Tensor& target, const Tensor& source) {
  return write(kAddInPlace, {target, source}, {});
}

Tensor mul_(const Tensor& target, double s) { return write(kMulInPlace, {target}, {s}); }

Tensor copy_(const Tensor& target, const Tensor& source) {
  return write(kCopyInPlace, {target, source}, {});
}

Tensor fill_(const Tensor& target, double value) {
  return write(kFillInPlace, {target}, {value});
}

}  // namespace tidemark
