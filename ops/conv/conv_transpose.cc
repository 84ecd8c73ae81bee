#include "ops/conv/conv_transpose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// The convolution from y to x that a transposed one reverses.
struct Convolution {
  const char* name;  // of the transposed one
  const OpDef &forward, &grad_input, &grad_weight;
};

// y's spatial extents. Throws UsageError for what the operators would report in their own
// terms.
template <size_t n>
std::array<int64_t, n> output_extents(const char* op, const Tensor& x, const Tensor& w,
                                      const Tensor& bias, const ConvTransposeAttrs<n>& attrs) {
  std::vector<TensorMeta> metas;
  for (const Tensor* tensor : {&x, &w, &bias}) {
    if (tensor->defined()) metas.push_back(tensor->meta());
  }
  const Attrs none;
  const OpQuery query{metas, {}, none};
  const auto& [stride, padding, dilation, groups] = attrs.conv;
  check_fits(op, query, x.defined() && w.defined(), "x and w must be defined");
  check_fits(op, query, x.shape().rank() == n + 2 && w.shape().rank() == n + 2,
             n == 2 ? "x and w must have 4 dimensions" : "x and w must have 5 dimensions");
  check_fits(
      op, query, x.shape().back() == w.shape()[0],
      "the weight's first dimension must be the number of input channels, which come last");
  check_fits(op, query, groups >= 1 && w.shape()[0] % groups == 0,
             "groups must divide the input's channels");
  check_fits(op, query, !bias.defined() || bias.shape() == Shape{w.shape().back() * groups},
             "the bias must have one element for each output channel");
  std::array<int64_t, n> extents{};
  for (size_t i = 0; i < n; ++i) {
    const int64_t more = attrs.output_padding[i];
    check_fits(op, query, stride[i] >= 1 && dilation[i] >= 1 && padding[i] >= 0,
               "stride and dilation must be positive, padding not negative");
    check_fits(op, query, 0 <= more && more < stride[i],
               "output_padding must be less than the stride");
    extents[i] = (x.extent(i + 1) - 1) * stride[i] - 2 * padding[i] +
                 dilation[i] * (w.extent(i + 1) - 1) + more + 1;
    check_fits(op, query, extents[i] >= 1, "the padding leaves no output");
  }
  return extents;
}

template <size_t n>
Tensor convolve_transposed(const Convolution& ops, const Tensor& x_in, const Tensor& w_in,
                           const Tensor& bias, const ConvTransposeAttrs<n>& attrs) {
  const ConvGradInputAttrs<n> input_attrs{attrs.conv,
                                          output_extents(ops.name, x_in, w_in, bias, attrs)};
  const Tensor x = contiguous(x_in);
  const Tensor w = contiguous(w_in);
  ConvGradWeightAttrs<n> weight_attrs{attrs.conv, {}, 0};
  std::copy_n(w.shape().begin() + 1, n, weight_attrs.extents.begin());
  Tensor y = dispatch1(ops.grad_input, {x, w}, input_attrs);
  Saved saved_x = needs_grad({w}) ? Saved(x) : Saved();
  Saved saved_w = needs_grad({x}) ? Saved(w) : Saved();
  auto grad = [=](std::span<const Tensor> gys, std::span<Tensor> grads,
                  std::span<const bool> wanted) mutable {
    const Tensor gy = contiguous(gys[0]);
    // The weight's gradient first: x is dropped before its own gradient is allocated.
    if (wanted[1]) {
      grads[1] =
          dispatch1(ops.grad_weight, {gy, std::exchange(saved_x, {}).get()}, weight_attrs);
    }
    if (wanted[0]) grads[0] = dispatch1(ops.forward, {gy, saved_w.get()}, attrs.conv);
  };
  record(ops.name, {x, w}, std::span(&y, 1), grad);
  return bias.defined() ? add(y, bias) : y;
}

}  // namespace

Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const ConvTransposeAttrs<2>& attrs) {
  return convolve_transposed({"conv_transpose2d", kConv2d, kConv2dGradInput, kConv2dGradWeight},
                             x, w, bias, attrs);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const ConvTransposeAttrs<3>& attrs) {
  return convolve_transposed({"conv_transpose3d", kConv3d, kConv3dGradInput, kConv3dGradWeight},
                             x, w, bias, attrs);
}

}  // namespace tidemark
