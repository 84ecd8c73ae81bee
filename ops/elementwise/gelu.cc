#include "ops/elementwise/gelu.h"

#include "ops/autograd/autograd.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// The inputs are x, or g and x.
template <const OpDef* op, size_t count>
std::vector<TensorMeta> infer(const OpQuery& query) {
  require_inputs(query, op->name, count);
  const DType dtype = require_floats(query, op->name, 0, count);
  const Shape& shape = query.inputs[0].shape;
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& input = query.inputs[i];
    require(input.is_contiguous(), op->name, "inputs must be contiguous");
    if (!(input.shape == shape)) {
      fail(op->name, "a gradient of shape " + shape.to_string() + " for an input of shape " +
                         input.shape.to_string());
    }
  }
  return {TensorMeta::contiguous(dtype, shape)};
}

// One or two exponentials, at 20 operations each, and polynomials.
template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

}  // namespace

const OpDef kGelu = {.name = "gelu",
                     .infer = infer<&kGelu, 1>,
                     .cost = cost<30>,
                     .may_overwrite = 0b1,
                     .prepare = {elementwise::prepare_gelu_cpu}};
const OpDef kGeluGrad = {.name = "gelu_grad",
                         .infer = infer<&kGeluGrad, 2>,
                         .cost = cost<50>,
                         .may_overwrite = 0b11,
                         .prepare = {elementwise::prepare_gelu_grad_cpu}};

Tensor gelu(const Tensor& input, GeluKind kind) {
  const Tensor x = contiguous(input);
  const GeluAttrs attrs{kind == GeluKind::kTanh};
  Tensor y = dispatch1(kGelu, {x}, attrs);
  if (!needs_grad({x})) return y;
  record("gelu", {x}, {&y, 1}, [attrs, x_ = Saved(x)](auto g, auto grads, auto) {
    grads[0] = dispatch1(kGeluGrad, {contiguous(g[0]), x_.get()}, attrs);
  });
  return y;
}

}  // namespace tidemark
