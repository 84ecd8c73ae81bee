#include "ops/pool/avg_pool2d.h"

#include "ops/autograd/autograd.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer_avg_pool2d(const OpQuery& query) {
  constexpr const char* kName = "avg_pool2d";
  const DType dtype = check_floats(kName, query, {4}, 1);
  const auto& attrs = query.attr<AvgPool2dAttrs>();
  const Shape& x = query.inputs[0].shape;
  if (!attrs.adaptive) {
    check_fits(kName, query, !attrs.pool.ceil, "windows may not reach past the end");
    return {TensorMeta::contiguous(dtype, pooled_shape(kName, query, x, attrs.pool))};
  }
  check_fits(kName, query, attrs.height >= 1 && attrs.width >= 1,
             "the output must have at least one row and column");
  return {TensorMeta::contiguous(dtype, {x[0], attrs.height, attrs.width, x[3]})};
}

std::vector<TensorMeta> infer_avg_pool2d_grad(const OpQuery& query) {
  constexpr const char* kName = "avg_pool2d_grad";
  const DType dtype = check_floats(kName, query, {4}, 1);
  const auto& attrs = query.attr<AvgPool2dAttrs>();
  const Shape& gy = query.inputs[0].shape;
  const Shape x{gy[0], attrs.height, attrs.width, gy[3]};
  check_fits(kName, query, x.elements() > 0, "the input's height and width must be positive");
  check_fits(kName, query, attrs.adaptive || pooled_shape(kName, query, x, attrs.pool) == gy,
             "the output's gradient does not have the output's shape");
  return {TensorMeta::contiguous(dtype, x)};
}

// One addition per input, as windows hardly overlap, and one division per output.
OpCost cost(const OpQuery& query) {
  return {.flops = static_cast<double>(query.inputs[0].shape.elements()) +
                   static_cast<double>(query.outputs[0].shape.elements()),
          .bytes_moved = bytes_moved(query)};
}

Tensor run(const Tensor& x_in, const AvgPool2dAttrs& attrs) {
  const Tensor x = contiguous(x_in);
  Tensor y = dispatch1(kAvgPool2d, {x}, attrs);
  AvgPool2dAttrs grad_attrs = attrs;
  grad_attrs.height = x.extent(1);
  grad_attrs.width = x.extent(2);
  record("avg_pool2d", {x}, std::span(&y, 1),
         [grad_attrs](std::span<const Tensor> gys, std::span<Tensor> grads,
                      std::span<const bool> wanted) {
           if (!wanted[0]) return;
           grads[0] = dispatch1(kAvgPool2dGrad, {contiguous(gys[0])}, grad_attrs);
         });
  return y;
}

}  // namespace

const OpDef kAvgPool2d =
    define_op("avg_pool2d", infer_avg_pool2d, cost, prepare_avg_pool2d_cpu);
const OpDef kAvgPool2dGrad =
    define_op("avg_pool2d_grad", infer_avg_pool2d_grad, cost, prepare_avg_pool2d_grad_cpu);

Tensor avg_pool2d(const Tensor& x, const Pool2dAttrs& attrs, bool count_include_pad) {
  return run(x, {attrs, count_include_pad, 0, 0, 0});
}

Tensor adaptive_avg_pool2d(const Tensor& x, int64_t height, int64_t width) {
  return run(x, {{}, 1, 1, height, width});
}

}  // namespace tidemark
