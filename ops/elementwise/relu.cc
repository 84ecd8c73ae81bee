#include "ops/elementwise/relu.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/registry/op_call.h"
#include "ops/view/contiguous.h"

namespace tidemark {

TensorMeta signs_of(const Shape& shape) {
  const int64_t words = (shape.elements() + kSignsPerWord - 1) / kSignsPerWord;
  return TensorMeta::contiguous(DType::kInt32, {words});
}

namespace {

// Input 0, which must be contiguous.
TensorMeta check_values(const OpQuery& query, const char* op, size_t inputs) {
  require_inputs(query, op, inputs);
  const DType dtype = require_floats(query, op, 0, 1);
  require(query.inputs[0].is_contiguous(), op, "input 0 must be contiguous");
  return TensorMeta::contiguous(dtype, query.inputs[0].shape);
}

std::vector<TensorMeta> infer(const OpQuery& query) {
  const TensorMeta y = check_values(query, "relu", 1);
  return {y, signs_of(y.shape)};
}

std::vector<TensorMeta> infer_grad(const OpQuery& query) {
  constexpr const char* kName = "relu_grad";
  const TensorMeta dx = check_values(query, kName, 2);
  const TensorMeta& signs = query.inputs[1];
  const TensorMeta expected = signs_of(dx.shape);
  require(
      signs.dtype == expected.dtype && signs.shape == expected.shape && signs.is_contiguous(),
      kName, "the signs do not belong to the gradient");
  return {dx};
}

std::vector<TensorMeta> infer_grad_by_values(const OpQuery& query) {
  constexpr const char* kName = "relu_grad_by_values";
  require_inputs(query, kName, 2);
  const DType dtype = require_floats(query, kName, 0, 2);
  const Shape& g = query.inputs[0].shape;
  require(query.inputs[1].shape == g, kName, "the values do not belong to the gradient");
  return {TensorMeta::contiguous(dtype, g)};
}

OpCost cost(const OpQuery& query) { return streaming_cost(query, 1); }

// The signs come with y, of a ReLU or of a batch norm with a residual.
std::vector<OtherCall> other_grads(const OpCall& call) {
  std::vector<OtherCall> others;
  const Operand g = call.input(0);
  const auto offer = [&](const Operand& values) {
    const bool same = values.meta.dtype == g.meta.dtype && values.meta.shape == g.meta.shape;
    if (values.storage && same) others.push_back({kReluGradByValues, {g, values}});
  };
  const OpCall* const maker = call.maker(1);
  if (!maker) return others;
  offer(maker->output(0));
  if (maker->body().op == &kRelu) offer(maker->input(0));
  return others;
}

}  // namespace

const OpDef kRelu = {.name = "relu",
                     .infer = infer,
                     .cost = cost,
                     .may_overwrite = 0b1,
                     .prepare = {elementwise::prepare_relu_cpu}};
const OpDef kReluGrad = {.name = "relu_grad",
                         .infer = infer_grad,
                         .cost = cost,
                         .may_overwrite = 0b1,
                         .prepare = {elementwise::prepare_relu_grad_cpu},
                         .variants = other_grads};
const OpDef kReluGradByValues = {.name = "relu_grad_by_values",
                                 .infer = infer_grad_by_values,
                                 .cost = cost,
                                 .may_overwrite = 0b11,
                                 .prepare = {map_floats_cpu<ReluGrad, 2>}};

Tensor relu(const Tensor& x_in) {
  const Tensor x = contiguous(x_in);
  std::vector<Tensor> made = dispatch(kRelu, {x});
  if (!needs_grad({x})) return made[0];
  record("relu", {x}, std::span(made).first(1),
         [signs = Saved(made[1])](auto g, auto grads, auto) {
           grads[0] = dispatch1(kReluGrad, {contiguous(g[0]), signs.get()});
         });
  return made[0];
}

}  // namespace tidemark
