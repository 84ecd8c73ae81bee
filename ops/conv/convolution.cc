// Convolutions over n spatial dimensions: conv2d and conv3d.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/conv/kernels.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

using namespace literals;

template <size_t n>
struct Names;
template <>
struct Names<2> {
  static constexpr const char *kForward = "conv2d", *kGradInput = "conv2d_grad_input",
                              *kGradWeight = "conv2d_grad_weight";
};
template <>
struct Names<3> {
  static constexpr const char *kForward = "conv3d", *kGradInput = "conv3d_grad_input",
                              *kGradWeight = "conv3d_grad_weight";
};

// (first, one extent for each spatial dimension, last).
template <size_t n>
Shape shape_of(int64_t first, const std::array<int64_t, n>& spatial, int64_t last) {
  Shape shape{first};
  for (const int64_t extent : spatial) shape.push_back(extent);
  shape.push_back(last);
  return shape;
}

template <size_t n>
std::array<int64_t, n> spatial_of(const Shape& shape) {
  std::array<int64_t, n> extents;
  std::copy_n(shape.begin() + 1, n, extents.begin());
  return extents;
}

// Checks that x, w and the attributes fit together; returns the shape of y.
template <size_t n>
Shape output_shape(const char* op, const OpQuery& query, const Shape& x, const Shape& w,
                   const ConvAttrs<n>& attrs) {
  const int64_t groups = attrs.groups;
  check_fits(op, query, groups >= 1 && x.back() % groups == 0 && w[0] % groups == 0,
             "groups must divide the input's and the output's channels");
  if (w.back() != x.back() / groups) {
    throw_misfit(
        op, query,
        "the input has " + std::to_string(x.back()) + " channels, but the weight takes " +
            std::to_string(w.back() * groups) + "; channels come last here: images are " +
            (n == 2 ? "NHWC, weights (K, R, S, C)" : "NDHWC, weights (K, T, R, S, C)"));
  }
  std::array<int64_t, n> positions;
  for (size_t i = 0; i < n; ++i) {
    positions[i] = window_positions(op, query, x[i + 1], w[i + 1], attrs.stride[i],
                                    attrs.padding[i], attrs.dilation[i]);
  }
  return shape_of(x[0], positions, w[0]);
}

template <size_t n>
std::vector<TensorMeta> infer_forward(const OpQuery& query) {
  constexpr const char* kName = Names<n>::kForward;
  const bool bias = query.inputs.size() == 3;
  const DType dtype = bias ? check_floats(kName, query, {n + 2, n + 2, 1}, 0b011)
                           : check_floats(kName, query, {n + 2, n + 2}, 0b11);
  const Shape& w = query.inputs[1].shape;
  check_fits(kName, query, !bias || query.inputs[2].shape[0] == w[0],
             "the bias must have one element for each output channel");
  return {TensorMeta::contiguous(
      dtype, output_shape(kName, query, query.inputs[0].shape, w, query.attr<ConvAttrs<n>>()))};
}

template <size_t n>
std::vector<TensorMeta> infer_grad_input(const OpQuery& query) {
  constexpr const char* kName = Names<n>::kGradInput;
  const DType dtype = check_floats(kName, query, {n + 2, n + 2}, 0b11);
  const auto& attrs = query.attr<ConvGradInputAttrs<n>>();
  const Shape& gy = query.inputs[0].shape;
  const Shape& w = query.inputs[1].shape;
  const Shape x = shape_of(gy[0], attrs.extents, w.back() * attrs.conv.groups);
  check_fits(kName, query, output_shape(kName, query, x, w, attrs.conv) == gy,
             "the output's gradient does not have the output's shape");
  return {TensorMeta::contiguous(dtype, x)};
}

template <size_t n>
std::vector<TensorMeta> infer_grad_weight(const OpQuery& query) {
  constexpr const char* kName = Names<n>::kGradWeight;
  const DType dtype = check_floats(kName, query, {n + 2, n + 2}, 0b11);
  const auto& attrs = query.attr<ConvGradWeightAttrs<n>>();
  const Shape& x = query.inputs[0].shape;
  const Shape& gy = query.inputs[1].shape;
  check_fits(kName, query, attrs.conv.groups >= 1, "groups must be positive");
  const Shape w = shape_of(gy.back(), attrs.extents, x.back() / attrs.conv.groups);
  check_fits(kName, query, output_shape(kName, query, x, w, attrs.conv) == gy,
             "the output's gradient does not have the output's shape");
  std::vector<TensorMeta> outputs{TensorMeta::contiguous(dtype, w)};
  if (attrs.bias) outputs.push_back(TensorMeta::contiguous(DType::kFloat32, {gy.back()}));
  return outputs;
}

// A GPU library's algorithm without a workspace: it gathers windows as it multiplies.
constexpr const char* kImplicit = "implicit";

// How many times as long as the default an algorithm takes, as measured for oneDNN's with one
// thread (README.md). A session's measurements replace these.
double relative_time(std::string_view algorithm) {
  struct Row {
    std::string_view part;
    double factor;
  };
  constexpr Row kRows[] = {{"ref", 200},  {"sse41", 4.5},   {"gemm", 1.5},
                           {"avx2", 1.2}, {kImplicit, 1.5}, {"", 1}};
  return std::find_if(
             std::begin(kRows), std::end(kRows),
             [&](const Row& row) { return algorithm.find(row.part) != std::string_view::npos; })
      ->factor;
}

// All three operators do one multiply-add for each element of y and each weight that it reads.
OpCost cost_of(const OpQuery& query, const Shape& y, const Shape& w) {
  const int64_t taps = w.elements() / w[0];
  return {.flops = 2.0 * static_cast<double>(y.elements()) * static_cast<double>(taps) *
                   relative_time(query.algorithm),
          .bytes_moved = bytes_moved(query),
          .matrix = true,
          .bfloat16 = query.inputs[0].dtype == DType::kBFloat16};
}

OpCost cost_forward(const OpQuery& query) {
  return cost_of(query, query.outputs[0].shape, query.inputs[1].shape);
}
OpCost cost_grad_input(const OpQuery& query) {
  return cost_of(query, query.inputs[0].shape, query.inputs[1].shape);
}
OpCost cost_grad_weight(const OpQuery& query) {
  return cost_of(query, query.inputs[1].shape, query.outputs[0].shape);
}

// A model of GPU libraries' workspaces. A 1x1 convolution with stride 1 is a matrix product of
// its tensors in place and needs none. Others may transform copies of their tensors (layout,
// tiles, partial sums): as many bytes as they move, within the common limit of 64 MiB.
template <size_t n>
Bytes model_workspace(const OpQuery& query, const Shape& w, const ConvAttrs<n>& attrs) {
  if (query.algorithm == kImplicit) return 0_B;
  const bool product = spatial_of<n>(w) == ones_of<n>() && attrs.stride == ones_of<n>() &&
                       attrs.padding == std::array<int64_t, n>{} && attrs.groups == 1;
  return product ? 0_B : std::min(bytes_moved(query), 64_MiB);
}

template <size_t n>
Bytes model_forward(const OpQuery& query) {
  return model_workspace(query, query.inputs[1].shape, query.attr<ConvAttrs<n>>());
}
template <size_t n>
Bytes model_grad_input(const OpQuery& query) {
  return model_workspace(query, query.inputs[1].shape,
                         query.attr<ConvGradInputAttrs<n>>().conv);
}
template <size_t n>
Bytes model_grad_weight(const OpQuery& query) {
  return model_workspace(query, query.outputs[0].shape,
                         query.attr<ConvGradWeightAttrs<n>>().conv);
}

template <Bytes (*workspace)(const OpQuery&)>
std::vector<std::string> model_algorithms(const OpQuery& query) {
  return workspace(query) > 0_B ? std::vector<std::string>{kImplicit}
                                : std::vector<std::string>{};
}

// The three operators.
struct Family {
  const OpDef &forward, &grad_input, &grad_weight;
};

template <size_t n>
Tensor convolve(const Family& ops, const Tensor& x_in, const Tensor& w_in, const Tensor& bias,
                const ConvAttrs<n>& attrs) {
  const Tensor x = contiguous(x_in);
  const Tensor w = contiguous(w_in);
  std::vector<Tensor> y = bias.defined()
                              ? dispatch(ops.forward, {x, w, contiguous(bias)}, attrs)
                              : dispatch(ops.forward, {x, w}, attrs);
  const bool with_bias = needs_grad({bias});
  Saved saved_x = needs_grad({w, bias}) ? Saved(x) : Saved();
  Saved saved_w = needs_grad({x}) ? Saved(w) : Saved();
  const ConvGradInputAttrs<n> input_attrs{attrs, spatial_of<n>(x.shape())};
  const ConvGradWeightAttrs<n> weight_attrs{attrs, spatial_of<n>(w.shape()), with_bias};
  auto grad = [=](std::span<const Tensor> gys, std::span<Tensor> grads,
                  std::span<const bool> wanted) mutable {
    const Tensor gy = contiguous(gys[0]);
    // The weight's gradient comes first: x may then be freed before its own gradient, which is
    // as large, is allocated.
    if (wanted[1] || with_bias) {
      const auto outputs =
          dispatch(ops.grad_weight, {std::exchange(saved_x, {}).get(), gy}, weight_attrs);
      if (wanted[1]) grads[1] = outputs[0];
      if (with_bias) grads[2] = outputs[1];
    }
    if (wanted[0]) grads[0] = dispatch1(ops.grad_input, {gy, saved_w.get()}, input_attrs);
  };
  record(ops.forward.name, {x, w, bias}, y, grad);
  return y[0];
}

template <size_t n>
constexpr OpDef kForward = define_op(Names<n>::kForward, infer_forward<n>, cost_forward,
                                     prepare_conv_cpu<n>, model_forward<n>,
                                     conv_algorithms_cpu<n>,
                                     model_algorithms<model_forward<n>>);
template <size_t n>
constexpr OpDef kGradInput = define_op(Names<n>::kGradInput, infer_grad_input<n>,
                                       cost_grad_input, prepare_conv_grad_input_cpu<n>,
                                       model_grad_input<n>, conv_grad_input_algorithms_cpu<n>,
                                       model_algorithms<model_grad_input<n>>);
template <size_t n>
constexpr OpDef kGradWeight = define_op(Names<n>::kGradWeight, infer_grad_weight<n>,
                                        cost_grad_weight, prepare_conv_grad_weight_cpu<n>,
                                        model_grad_weight<n>,
                                        conv_grad_weight_algorithms_cpu<n>,
                                        model_algorithms<model_grad_weight<n>>);

}  // namespace

constinit const OpDef kConv2d = kForward<2>;
constinit const OpDef kConv2dGradInput = kGradInput<2>;
constinit const OpDef kConv2dGradWeight = kGradWeight<2>;
constinit const OpDef kConv3d = kForward<3>;
constinit const OpDef kConv3dGradInput = kGradInput<3>;
constinit const OpDef kConv3dGradWeight = kGradWeight<3>;

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dAttrs& attrs) {
  return convolve({kConv2d, kConv2dGradInput, kConv2dGradWeight}, x, w, bias, attrs);
}

Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv3dAttrs& attrs) {
  return convolve({kConv3d, kConv3dGradInput, kConv3dGradWeight}, x, w, bias, attrs);
}

}  // namespace tidemark
