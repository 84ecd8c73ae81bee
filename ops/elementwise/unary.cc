#include "ops/elementwise/unary.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

// Of the operators without kernels for bfloat16.
void require_float32(const OpQuery& query, const char* op) {
  require_dtype(query, op, 0, DType::kFloat32);
}

template <const OpDef* op, bool bfloat16>
std::vector<TensorMeta> infer_unary(const OpQuery& query) {
  require_inputs(query, op->name, 1);
  if (!bfloat16) require_float32(query, op->name);
  const DType dtype = require_floats(query, op->name, 0, 1);
  return {TensorMeta::contiguous(dtype, query.inputs[0].shape)};
}

// g, and y or x, of one shape
template <const OpDef* op, bool bfloat16>
std::vector<TensorMeta> infer_grad(const OpQuery& query) {
  require_inputs(query, op->name, 2);
  if (!bfloat16) require_float32(query, op->name);
  const DType dtype = require_floats(query, op->name, 0, 2);
  if (!(query.inputs[0].shape == query.inputs[1].shape)) {
    fail(op->name, "a gradient of shape " + query.inputs[0].shape.to_string() + " for " +
                       query.inputs[1].shape.to_string());
  }
  return {TensorMeta::contiguous(dtype, query.inputs[0].shape)};
}

template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

// y = forward(x), dx = gradient(g, kept), where y is kept.
Tensor from_output(const OpDef& forward, const OpDef& gradient, const Tensor& x) {
  Tensor y = dispatch1(forward, {x});
  if (!needs_grad({x})) return y;
  record(forward.name, {x}, {&y, 1}, [&gradient, y_ = Saved(y)](auto g, auto grads, auto) {
    grads[0] = dispatch1(gradient, {g[0], y_.get()});
  });
  return y;
}

// The same, where x is kept.
Tensor from_input(const OpDef& forward, const OpDef& gradient, const Tensor& x) {
  Tensor y = dispatch1(forward, {x});
  if (!needs_grad({x})) return y;
  record(forward.name, {x}, {&y, 1}, [&gradient, x_ = Saved(x)](auto g, auto grads, auto) {
    grads[0] = dispatch1(gradient, {g[0], x_.get()});
  });
  return y;
}

}  // namespace

// Functions of libm are counted as 20 operations: what they cost beside an addition.
#define TIDEMARK_UNARY(symbol, text, infer_function, flops, kernel, bfloat16) \
  const OpDef symbol = {.name = text,                                         \
                        .infer = infer_function<&symbol, bfloat16>,           \
                        .cost = cost<flops>,                                  \
                        .may_overwrite = 0b11,                                \
                        .prepare = {elementwise::prepare_##kernel##_cpu}}
TIDEMARK_UNARY(kScale, "scale", infer_unary, 1, scale, true);
TIDEMARK_UNARY(kNeg, "neg", infer_unary, 1, neg, true);
TIDEMARK_UNARY(kAbs, "abs", infer_unary, 1, abs, false);
TIDEMARK_UNARY(kAbsGrad, "abs_grad", infer_grad, 1, abs_grad, false);
TIDEMARK_UNARY(kRelu, "relu", infer_unary, 1, relu, true);
TIDEMARK_UNARY(kReluGrad, "relu_grad", infer_grad, 1, relu_grad, true);
TIDEMARK_UNARY(kExp, "exp", infer_unary, 20, exp, false);
TIDEMARK_UNARY(kLog, "log", infer_unary, 20, log, false);
TIDEMARK_UNARY(kSqrt, "sqrt", infer_unary, 4, sqrt, false);
TIDEMARK_UNARY(kSqrtGrad, "sqrt_grad", infer_grad, 4, sqrt_grad, false);
TIDEMARK_UNARY(kTanh, "tanh", infer_unary, 20, tanh, true);
TIDEMARK_UNARY(kTanhGrad, "tanh_grad", infer_grad, 3, tanh_grad, true);
TIDEMARK_UNARY(kSigmoid, "sigmoid", infer_unary, 20, sigmoid, true);
TIDEMARK_UNARY(kSigmoidGrad, "sigmoid_grad", infer_grad, 3, sigmoid_grad, true);
TIDEMARK_UNARY(kRelu6, "relu6", infer_unary, 2, relu6, true);
TIDEMARK_UNARY(kRelu6Grad, "relu6_grad", infer_grad, 2, relu6_grad, true);
TIDEMARK_UNARY(kSilu, "silu", infer_unary, 21, silu, true);
TIDEMARK_UNARY(kSiluGrad, "silu_grad", infer_grad, 25, silu_grad, true);
#undef TIDEMARK_UNARY

Tensor scale(const Tensor& x, double s) {
  Tensor y = dispatch1(kScale, {x}, {}, {s});
  if (!needs_grad({x})) return y;
  record("scale", {x}, {&y, 1}, [s](auto g, auto grads, auto) { grads[0] = scale(g[0], s); });
  return y;
}

Tensor neg(const Tensor& x) {
  Tensor y = dispatch1(kNeg, {x});
  if (!needs_grad({x})) return y;
  record("neg", {x}, {&y, 1}, [](auto g, auto grads, auto) { grads[0] = neg(g[0]); });
  return y;
}

Tensor abs(const Tensor& x) { return from_input(kAbs, kAbsGrad, x); }
Tensor relu(const Tensor& x) { return from_output(kRelu, kReluGrad, x); }
Tensor exp(const Tensor& x) { return from_output(kExp, kMul, x); }
Tensor log(const Tensor& x) { return from_input(kLog, kDiv, x); }
Tensor sqrt(const Tensor& x) { return from_output(kSqrt, kSqrtGrad, x); }
Tensor tanh(const Tensor& x) { return from_output(kTanh, kTanhGrad, x); }
Tensor sigmoid(const Tensor& x) { return from_output(kSigmoid, kSigmoidGrad, x); }
Tensor relu6(const Tensor& x) { return from_output(kRelu6, kRelu6Grad, x); }
Tensor silu(const Tensor& x) { return from_input(kSilu, kSiluGrad, x); }

}  // namespace tidemark
