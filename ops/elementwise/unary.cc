#include "ops/elementwise/unary.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/registry/op_call.h"

namespace tidemark {
namespace {

// For operators without kernels for bfloat16.
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
    fail(op->name, "a gradient of shape " + query.inputs[0].shape.to_string() +
                       " for an input of shape " + query.inputs[1].shape.to_string());
  }
  return {TensorMeta::contiguous(dtype, query.inputs[0].shape)};
}

template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

// relu6_grad(g, y) from x: 0 < x < 6 where 0 < y < 6.
std::vector<OtherCall> other_relu6_grads(const OpCall& call) {
  const OpCall* const maker = call.maker(1);
  if (!maker || maker->body().op != &kRelu6) return {};
  return {{kRelu6Grad, {call.input(0), maker->input(0)}}};
}

// y = forward(x), dx = gradient(g, kept), where y is kept, or else x.
Tensor differentiable(const OpDef& forward, const OpDef& gradient, const Tensor& x,
                      bool keep_output) {
  Tensor y = dispatch1(forward, {x});
  if (!needs_grad({x})) return y;
  record(forward.name, {x}, {&y, 1},
         [&gradient, kept = Saved(keep_output ? y : x)](auto g, auto grads, auto) {
           grads[0] = dispatch1(gradient, {g[0], kept.get()});
         });
  return y;
}
Tensor from_output(const OpDef& forward, const OpDef& gradient, const Tensor& x) {
  return differentiable(forward, gradient, x, true);
}
Tensor from_input(const OpDef& forward, const OpDef& gradient, const Tensor& x) {
  return differentiable(forward, gradient, x, false);
}

}  // namespace

// A function of libm counts as 20 operations, its cost compared with an addition.
#define TIDEMARK_UNARY(symbol, text, infer_function, flops, bfloat16, ...) \
  const OpDef symbol = {.name = text,                                      \
                        .infer = infer_function<&symbol, bfloat16>,        \
                        .cost = cost<flops>,                               \
                        .may_overwrite = 0b11,                             \
                        .prepare = {__VA_ARGS__}}
#define TIDEMARK_FLOATS(symbol, text, flops, ...) \
  TIDEMARK_UNARY(symbol, text, infer_unary, flops, true, map_floats_cpu<__VA_ARGS__, 1>)
#define TIDEMARK_FLOATS_GRAD(symbol, text, flops, ...) \
  TIDEMARK_UNARY(symbol, text, infer_grad, flops, true, map_floats_cpu<__VA_ARGS__, 2>)
#define TIDEMARK_FLOAT(symbol, text, flops, functor) \
  TIDEMARK_UNARY(symbol, text, infer_unary, flops, false, map_cpu<functor, float, float>)
#define TIDEMARK_FLOAT_GRAD(symbol, text, flops, functor) \
  TIDEMARK_UNARY(symbol, text, infer_grad, flops, false, map_cpu<functor, float, float, float>)
TIDEMARK_FLOATS(kScale, "scale", 1, Scale);
TIDEMARK_FLOATS(kNeg, "neg", 1, Neg);
TIDEMARK_FLOAT(kAbs, "abs", 1, Abs);
TIDEMARK_FLOAT_GRAD(kAbsGrad, "abs_grad", 1, AbsGrad);
TIDEMARK_FLOAT(kExp, "exp", 20, Exp);
TIDEMARK_FLOAT(kLog, "log", 20, Log);
TIDEMARK_FLOAT(kSqrt, "sqrt", 4, Sqrt);
TIDEMARK_FLOAT_GRAD(kSqrtGrad, "sqrt_grad", 4, SqrtGrad);
TIDEMARK_FLOATS(kTanh, "tanh", 20, Tanh);
TIDEMARK_FLOATS_GRAD(kTanhGrad, "tanh_grad", 3, TanhGrad);
TIDEMARK_FLOATS(kSigmoid, "sigmoid", 20, Sigmoid);
TIDEMARK_FLOATS_GRAD(kSigmoidGrad, "sigmoid_grad", 3, SigmoidGrad);
TIDEMARK_FLOATS(kRelu6, "relu6", 2, Relu6);
const OpDef kRelu6Grad = {.name = "relu6_grad",
                          .infer = infer_grad<&kRelu6Grad, true>,
                          .cost = cost<2>,
                          .may_overwrite = 0b11,
                          .prepare = {map_floats_cpu<Relu6Grad, 2>},
                          .variants = other_relu6_grads};
TIDEMARK_UNARY(kSilu, "silu", infer_unary, 21, true, elementwise::prepare_silu_cpu);
TIDEMARK_UNARY(kSiluGrad, "silu_grad", infer_grad, 25, true,
               elementwise::prepare_silu_grad_cpu);
#undef TIDEMARK_FLOAT_GRAD
#undef TIDEMARK_FLOAT
#undef TIDEMARK_FLOATS_GRAD
#undef TIDEMARK_FLOATS
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
Tensor exp(const Tensor& x) { return from_output(kExp, kMul, x); }
Tensor log(const Tensor& x) { return from_input(kLog, kDiv, x); }
Tensor sqrt(const Tensor& x) { return from_output(kSqrt, kSqrtGrad, x); }
Tensor tanh(const Tensor& x) { return from_output(kTanh, kTanhGrad, x); }
Tensor sigmoid(const Tensor& x) { return from_output(kSigmoid, kSigmoidGrad, x); }
Tensor relu6(const Tensor& x) { return from_output(kRelu6, kRelu6Grad, x); }
Tensor silu(const Tensor& x) { return from_input(kSilu, kSiluGrad, x); }

}  // namespace tidemark
