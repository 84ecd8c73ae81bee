#include "ops/conv/conv2d.h"

#include <algorithm>

#include "ops/autograd/autograd.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

using namespace literals;

// Checks that x, w and the attributes belong together; the shape of y.
Shape output_shape(const char* op, const OpQuery& query, const Shape& x, const Shape& w,
                   const Conv2dAttrs& attrs) {
  const int64_t groups = attrs.groups;
  check_fits(op, query, groups >= 1 && x[3] % groups == 0 && w[0] % groups == 0,
             "groups must divide the input's and the output's channels");
  check_fits(op, query, w[3] == x[3] / groups,
             "the weight's last dimension must be the input's channels / groups");
  const int64_t p = window_positions(op, query, x[1], w[1], attrs.stride[0], attrs.padding[0],
                                     attrs.dilation[0]);
  const int64_t q = window_positions(op, query, x[2], w[2], attrs.stride[1], attrs.padding[1],
                                     attrs.dilation[1]);
  return {x[0], p, q, w[0]};
}

std::vector<TensorMeta> infer_conv2d(const OpQuery& query) {
  const bool bias = query.inputs.size() == 3;
  if (bias) {
    check_float32("conv2d", query, {4, 4, 1});
  } else {
    check_float32("conv2d", query, {4, 4});
  }
  const Shape& w = query.inputs[1].shape;
  check_fits("conv2d", query, !bias || query.inputs[2].shape[0] == w[0],
             "the bias must have one element for each output channel");
  return {TensorMeta::contiguous(
      DType::kFloat32,
      output_shape("conv2d", query, query.inputs[0].shape, w, query.attr<Conv2dAttrs>()))};
}

std::vector<TensorMeta> infer_conv2d_grad_input(const OpQuery& query) {
  constexpr const char* kName = "conv2d_grad_input";
  check_float32(kName, query, {4, 4});
  const auto& attrs = query.attr<Conv2dGradInputAttrs>();
  const Shape& gy = query.inputs[0].shape;
  const Shape& w = query.inputs[1].shape;
  const Shape x{gy[0], attrs.height, attrs.width, w[3] * attrs.conv.groups};
  check_fits(kName, query, output_shape(kName, query, x, w, attrs.conv) == gy,
             "the output's gradient does not have the output's shape");
  return {TensorMeta::contiguous(DType::kFloat32, x)};
}

std::vector<TensorMeta> infer_conv2d_grad_weight(const OpQuery& query) {
  constexpr const char* kName = "conv2d_grad_weight";
  check_float32(kName, query, {4, 4});
  const auto& attrs = query.attr<Conv2dGradWeightAttrs>();
  const Shape& x = query.inputs[0].shape;
  const Shape& gy = query.inputs[1].shape;
  check_fits(kName, query, attrs.conv.groups >= 1, "groups must be positive");
  const Shape w{gy[3], attrs.height, attrs.width, x[3] / attrs.conv.groups};
  check_fits(kName, query, output_shape(kName, query, x, w, attrs.conv) == gy,
             "the output's gradient does not have the output's shape");
  std::vector<TensorMeta> outputs{TensorMeta::contiguous(DType::kFloat32, w)};
  if (attrs.bias) outputs.push_back(TensorMeta::contiguous(DType::kFloat32, {gy[3]}));
  return outputs;
}

// All three do one multiply-add for each element of y and each weight that it reads.
OpCost cost_of(const OpQuery& query, const Shape& y, const Shape& w) {
  return {.flops =
              2.0 * static_cast<double>(y.elements()) * static_cast<double>(w[1] * w[2] * w[3]),
          .bytes_moved = bytes_moved(query),
          .matrix = true};
}

OpCost cost_conv2d(const OpQuery& query) {
  return cost_of(query, query.outputs[0].shape, query.inputs[1].shape);
}
OpCost cost_conv2d_grad_input(const OpQuery& query) {
  return cost_of(query, query.inputs[0].shape, query.inputs[1].shape);
}
OpCost cost_conv2d_grad_weight(const OpQuery& query) {
  return cost_of(query, query.inputs[1].shape, query.outputs[0].shape);
}

// A model of GPU libraries' workspaces. A 1x1 convolution with stride 1 is a matrix product on
// NHWC tensors as they lie: none. Anything else may transform copies of its tensors (layout,
// tiles, partial sums), within the limit that frameworks commonly set: their bytes, at most 64
// MiB.
Bytes model_workspace(const OpQuery& query, const Shape& w, const Conv2dAttrs& attrs) {
  const bool product = w[1] == 1 && w[2] == 1 && attrs.stride[0] == 1 && attrs.stride[1] == 1 &&
                       attrs.padding[0] == 0 && attrs.padding[1] == 0 && attrs.groups == 1;
  return product ? 0_B : std::min(bytes_moved(query), 64_MiB);
}

Bytes model_conv2d(const OpQuery& query) {
  return model_workspace(query, query.inputs[1].shape, query.attr<Conv2dAttrs>());
}
Bytes model_conv2d_grad_input(const OpQuery& query) {
  return model_workspace(query, query.inputs[1].shape, query.attr<Conv2dGradInputAttrs>().conv);
}
Bytes model_conv2d_grad_weight(const OpQuery& query) {
  return model_workspace(query, query.outputs[0].shape,
                         query.attr<Conv2dGradWeightAttrs>().conv);
}

}  // namespace

const OpDef kConv2d{.name = "conv2d",
                    .infer = infer_conv2d,
                    .cost = cost_conv2d,
                    .modelled_workspace = model_conv2d,
                    .prepare = {prepare_conv2d_cpu, nullptr, nullptr}};
const OpDef kConv2dGradInput{.name = "conv2d_grad_input",
                             .infer = infer_conv2d_grad_input,
                             .cost = cost_conv2d_grad_input,
                             .modelled_workspace = model_conv2d_grad_input,
                             .prepare = {prepare_conv2d_grad_input_cpu, nullptr, nullptr}};
const OpDef kConv2dGradWeight{.name = "conv2d_grad_weight",
                              .infer = infer_conv2d_grad_weight,
                              .cost = cost_conv2d_grad_weight,
                              .modelled_workspace = model_conv2d_grad_weight,
                              .prepare = {prepare_conv2d_grad_weight_cpu, nullptr, nullptr}};

Tensor conv2d(const Tensor& x_in, const Tensor& w_in, const Tensor& bias,
              const Conv2dAttrs& attrs) {
  const Tensor x = contiguous(x_in);
  const Tensor w = contiguous(w_in);
  std::vector<Tensor> y = bias.defined() ? dispatch(kConv2d, {x, w, contiguous(bias)}, attrs)
                                         : dispatch(kConv2d, {x, w}, attrs);
  const bool with_bias = needs_grad({bias});
  Saved saved_x = needs_grad({w, bias}) ? Saved(x) : Saved();
  Saved saved_w = needs_grad({x}) ? Saved(w) : Saved();
  const Conv2dGradInputAttrs input_attrs{attrs, x.extent(1), x.extent(2)};
  const Conv2dGradWeightAttrs weight_attrs{attrs, w.extent(1), w.extent(2), with_bias};
  auto grad = [=](std::span<const Tensor> gys, std::span<Tensor> grads,
                  std::span<const bool> wanted) {
    const Tensor gy = contiguous(gys[0]);
    if (wanted[0]) grads[0] = dispatch1(kConv2dGradInput, {gy, saved_w.get()}, input_attrs);
    if (wanted[1] || with_bias) {
      const auto outputs = dispatch(kConv2dGradWeight, {saved_x.get(), gy}, weight_attrs);
      if (wanted[1]) grads[1] = outputs[0];
      if (with_bias) grads[2] = outputs[1];
    }
  };
  record("conv2d", {x, w, bias}, y, grad);
  return y[0];
}

}  // namespace tidemark
