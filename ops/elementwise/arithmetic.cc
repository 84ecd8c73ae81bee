#include "ops/elementwise/arithmetic.h"

#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/functors.h"
#include "ops/elementwise/unary.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/signature.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"

namespace tidemark {
namespace {

template <const OpDef* op>
std::vector<TensorMeta> infer_binary(const OpQuery& query) {
  require_inputs(query, op->name, 2);
  if (op == &kDiv) require_dtype(query, op->name, 0, DType::kFloat32);
  const DType dtype = require_floats(query, op->name, 0, 2);
  return {TensorMeta::contiguous(
      dtype, broadcast(op->name, query.inputs[0].shape, query.inputs[1].shape))};
}

// g (of y's shape), y, b -> of y's shape
std::vector<TensorMeta> infer_div_grad(const OpQuery& query) {
  require_inputs(query, kDivGrad.name, 3);
  for (size_t i = 0; i < 3; ++i) require_dtype(query, kDivGrad.name, i, DType::kFloat32);
  return {TensorMeta::contiguous(DType::kFloat32, query.inputs[1].shape)};
}

template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

Saved save_if(bool wanted, const Tensor& tensor) { return wanted ? Saved(tensor) : Saved(); }

}  // namespace

#define TIDEMARK_BINARY(symbol, text, flops, ...)       \
  const OpDef symbol = {.name = text,                   \
                        .infer = infer_binary<&symbol>, \
                        .cost = cost<flops>,            \
                        .may_overwrite = 0b11,          \
                        .prepare = {__VA_ARGS__}}
TIDEMARK_BINARY(kAdd, "add", 1, map_floats_cpu<Add, 2>);
TIDEMARK_BINARY(kSub, "sub", 1, map_floats_cpu<Sub, 2>);
TIDEMARK_BINARY(kMul, "mul", 1, map_floats_cpu<Mul, 2>);
TIDEMARK_BINARY(kDiv, "div", 1, map_cpu<Div, float, float, float>);
TIDEMARK_BINARY(kAddScaled, "add_scaled", 2, map_floats_cpu<AddScaled, 2>);
#undef TIDEMARK_BINARY
const OpDef kDivGrad = {.name = "div_grad",
                        .infer = infer_div_grad,
                        .cost = cost<2>,
                        .may_overwrite = 0b111,
                        .prepare = {map_cpu<DivGrad, float, float, float, float>}};

namespace {

// y = a + f(b) for a linear, elementwise f: da = g, db = f(g).
template <class F>
Tensor add_linear(const OpDef& op, const Tensor& a, const Tensor& b, const Scalars& scalars,
                  F f) {
  Tensor y = dispatch1(op, {a, b}, {}, scalars);
  if (!needs_grad({a, b})) return y;
  record(op.name, {a, b}, {&y, 1},
         [as = a.shape(), bs = b.shape(), f](auto g, auto grads, auto wanted) {
           if (wanted[0]) grads[0] = sum_to(g[0], as);
           if (wanted[1]) grads[1] = f(sum_to(g[0], bs));
         });
  return y;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return add_linear(kAdd, a, b, {}, [](const Tensor& g) { return g; });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  return add_linear(kSub, a, b, {}, [](const Tensor& g) { return neg(g); });
}

Tensor add_scaled(const Tensor& a, const Tensor& b, double s) {
  return add_linear(kAddScaled, a, b, {s}, [s](const Tensor& g) { return scale(g, s); });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor y = dispatch1(kMul, {a, b});
  if (!needs_grad({a, b})) return y;
  record("mul", {a, b}, {&y, 1},
         [as = a.shape(), bs = b.shape(), a_ = save_if(needs_grad({b}), a),
          b_ = save_if(needs_grad({a}), b)](auto g, auto grads, auto wanted) mutable {
           // b's gradient comes first, as b is usually smaller: a may then be freed before its
           // own gradient is allocated.
           if (wanted[1]) grads[1] = sum_to(mul(g[0], std::exchange(a_, {}).get()), bs);
           if (wanted[0]) grads[0] = sum_to(mul(g[0], b_.get()), as);
         });
  return y;
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor y = dispatch1(kDiv, {a, b});
  if (!needs_grad({a, b})) return y;
  record("div", {a, b}, {&y, 1},
         [as = a.shape(), bs = b.shape(), b_ = Saved(b), y_ = save_if(needs_grad({b}), y)](
             auto g, auto grads, auto wanted) mutable {
           if (wanted[1]) {
             const Tensor saved_y = std::exchange(y_, {}).get();
             grads[1] = sum_to(dispatch1(kDivGrad, {g[0], saved_y, b_.get()}), bs);
           }
           if (wanted[0]) grads[0] = sum_to(div(g[0], b_.get()), as);
         });
  return y;
}

}  // namespace tidemark
