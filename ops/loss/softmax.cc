#include "ops/autograd/autograd.h"
#include "ops/elementwise/compare.h"
#include "ops/kernels/signature.h"
#include "ops/loss/kernels.h"
#include "ops/loss/loss.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// Takes one or two gapless tensors of one shape: x, or g and y.
template <const OpDef* op, size_t count>
std::vector<TensorMeta> infer_rows(const OpQuery& query) {
  require_inputs(query, op->name, count);
  const Shape& shape = query.inputs[0].shape;
  if (shape.rank() == 0) fail(op->name, "a scalar has no last dimension");
  for (size_t i = 0; i < count; ++i) {
    require_dtype(query, op->name, i, DType::kFloat32);
    require(query.inputs[i].is_contiguous(), op->name, "inputs must be contiguous");
    if (!(query.inputs[i].shape == shape)) {
      fail(op->name, "shapes " + shape.to_string() + " and " +
                         query.inputs[i].shape.to_string() + " differ");
    }
  }
  return {TensorMeta::contiguous(DType::kFloat32, shape)};
}

template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

Tensor normalised(const OpDef& forward, const OpDef& gradient, const Tensor& input) {
  if (input.dtype() == DType::kBFloat16) {
    return cast(normalised(forward, gradient, cast(input, DType::kFloat32)), DType::kBFloat16);
  }
  const Tensor x = contiguous(input);
  Tensor y = dispatch1(forward, {x});
  if (!needs_grad({x})) return y;
  record(forward.name, {x}, {&y, 1}, [&gradient, y_ = Saved(y)](auto g, auto grads, auto) {
    grads[0] = dispatch1(gradient, {contiguous(g[0]), y_.get()});
  });
  return y;
}

}  // namespace

const OpDef kSoftmax =
    define_op("softmax", infer_rows<&kSoftmax, 1>, cost<25>, loss::prepare_softmax_cpu);
const OpDef kSoftmaxGrad = define_op("softmax_grad", infer_rows<&kSoftmaxGrad, 2>, cost<4>,
                                     loss::prepare_softmax_grad_cpu);
const OpDef kLogSoftmax = define_op("log_softmax", infer_rows<&kLogSoftmax, 1>, cost<25>,
                                    loss::prepare_log_softmax_cpu);
const OpDef kLogSoftmaxGrad = define_op("log_softmax_grad", infer_rows<&kLogSoftmaxGrad, 2>,
                                        cost<23>, loss::prepare_log_softmax_grad_cpu);

Tensor softmax(const Tensor& x) { return normalised(kSoftmax, kSoftmaxGrad, x); }

Tensor log_softmax(const Tensor& x) { return normalised(kLogSoftmax, kLogSoftmaxGrad, x); }

}  // namespace tidemark
