#include "ops/elementwise/silu_mul.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// gate and up, or g, gate and up: one type and shape. Returns that of an output.
TensorMeta check(const OpQuery& query, const char* op, size_t count) {
  require_inputs(query, op, count);
  const DType dtype = require_floats(query, op, 0, count);
  const Shape& shape = query.inputs[0].shape;
  for (const TensorMeta& input : query.inputs) {
    require(input.is_contiguous(), op, "inputs must be contiguous");
    if (!(input.shape == shape)) {
      fail(op, "inputs must have the same shape, not " + shape.to_string() + " and " +
                   input.shape.to_string());
    }
  }
  return TensorMeta::contiguous(dtype, shape);
}

std::vector<TensorMeta> infer(const OpQuery& query) { return {check(query, "silu_mul", 2)}; }

std::vector<TensorMeta> infer_grad(const OpQuery& query) {
  const TensorMeta gradient = check(query, "silu_mul_grad", 3);
  return {gradient, gradient};
}

// One or two exponentials, at 20 operations each.
template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

}  // namespace

const OpDef kSiluMul = {.name = "silu_mul",
                        .infer = infer,
                        .cost = cost<22>,
                        .may_overwrite = 0b11,
                        .prepare = {elementwise::prepare_silu_mul_cpu}};
const OpDef kSiluMulGrad = {.name = "silu_mul_grad",
                            .infer = infer_grad,
                            .cost = cost<48>,
                            .may_overwrite = 0b111,
                            .prepare = {elementwise::prepare_silu_mul_grad_cpu}};

Tensor silu_mul(const Tensor& gate_in, const Tensor& up_in) {
  const Tensor gate = contiguous(gate_in), up = contiguous(up_in);
  Tensor y = dispatch1(kSiluMul, {gate, up});
  if (!needs_grad({gate, up})) return y;
  record("silu_mul", {gate, up}, {&y, 1},
         [gate_ = Saved(gate), up_ = Saved(up)](auto g, auto grads, auto wanted) {
           std::vector<Tensor> made =
               dispatch(kSiluMulGrad, {contiguous(g[0]), gate_.get(), up_.get()});
           for (size_t i = 0; i < made.size(); ++i) {
             if (wanted[i]) grads[i] = std::move(made[i]);
           }
         });
  return y;
}

}  // namespace tidemark
