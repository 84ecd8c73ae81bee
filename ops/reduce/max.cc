#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

Shape without_last(const char* op, const Shape& x) {
  if (x.rank() == 0 || x.back() == 0) {
    fail(op, "shape " + x.to_string() + " has no last dimension with elements");
  }
  return Shape(std::span(x.begin(), x.rank() - 1));
}

std::vector<TensorMeta> infer_max(const OpQuery& query) {
  require_inputs(query, "max", 1);
  require_dtype(query, "max", 0, DType::kFloat32);
  const Shape shape = without_last("max", query.inputs[0].shape);
  return {TensorMeta::contiguous(DType::kFloat32, shape),
          TensorMeta::contiguous(DType::kInt64, shape)};
}

std::vector<TensorMeta> infer_argmax(const OpQuery& query) {
  require_inputs(query, "argmax", 1);
  require_dtype(query, "argmax", 0, DType::kFloat32);
  return {TensorMeta::contiguous(DType::kInt64, without_last("argmax", query.inputs[0].shape))};
}

// g, indices -> dx
std::vector<TensorMeta> infer_max_grad(const OpQuery& query) {
  require_inputs(query, "max_grad", 2);
  require_dtype(query, "max_grad", 0, DType::kFloat32);
  require_dtype(query, "max_grad", 1, DType::kInt64);
  Shape shape = query.inputs[1].shape;
  shape.push_back(query.attr<reduce::MaxGradAttrs>().extent);
  return {TensorMeta::contiguous(DType::kFloat32, shape)};
}

std::vector<TensorMeta> infer_accuracy_count(const OpQuery& query) {
  require_inputs(query, "accuracy_count", 2);
  require_floats(query, "accuracy_count", 0, 1);
  require_dtype(query, "accuracy_count", 1, DType::kInt64);
  const Shape &logits = query.inputs[0].shape, &labels = query.inputs[1].shape;
  if (logits.rank() != 2 || logits[1] == 0 || !(labels == Shape{logits[0]})) {
    fail("accuracy_count", "logits must be (N, C) and labels (N), not " + logits.to_string() +
                               " and " + labels.to_string());
  }
  return {TensorMeta::contiguous(DType::kInt64, {})};
}

OpCost cost(const OpQuery& query) { return streaming_cost(query, 1); }

}  // namespace

const OpDef kMax = define_op("max", infer_max, cost, reduce::prepare_max_cpu);
const OpDef kMaxGrad =
    define_op("max_grad", infer_max_grad, cost, reduce::prepare_max_grad_cpu);
const OpDef kArgmax = define_op("argmax", infer_argmax, cost, reduce::prepare_argmax_cpu);
const OpDef kAccuracyCount =
    define_op("accuracy_count", infer_accuracy_count, cost, reduce::prepare_accuracy_count_cpu);

std::pair<Tensor, Tensor> max(const Tensor& x) {
  std::vector<Tensor> outputs = dispatch(kMax, {x});
  if (needs_grad({x})) {
    record(
        "max", {x}, {outputs.data(), 1},
        [indices = Saved(outputs[1]), extent = x.shape().back()](auto g, auto grads, auto) {
          grads[0] = dispatch1(kMaxGrad, {g[0], indices.get()}, reduce::MaxGradAttrs{extent});
        });
  }
  return {outputs[0], outputs[1]};
}

Tensor argmax(const Tensor& x) { return dispatch1(kArgmax, {x}); }

Tensor accuracy_count(const Tensor& logits, const Tensor& labels) {
  return dispatch1(kAccuracyCount, {logits, labels});
}

}  // namespace tidemark
