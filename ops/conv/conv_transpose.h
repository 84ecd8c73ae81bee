// Transposed convolution: the gradient of a convolution for its input, as an operation of its
// own. It enlarges images by its stride.
//
//   y[n, p*stride + r*dilation - padding, q*..., k] +=
//       x[n,p,q,c] * w[c,r,s,k]        for all p, q, r, s, c of the group of k
//   y[n,h,w,k] += bias[k]
//
// x (N, P, Q, C), w (C, R, S, K / groups), bias (K) -> y (N, H, W, K), with
// H = (P - 1)*stride - 2*padding + dilation*(R - 1) + output_padding + 1. conv_transpose3d has
// a third spatial dimension, time, in front.
//
// Gradients: for x, the convolution of gy with w; for w, the correlation of gy with x; for
// bias, gy summed over N, H, W. Types are as in conv.h, whose operators run forward and
// backward.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/conv/attrs.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

template <size_t n>
struct ConvTransposeAttrs {
  ConvAttrs<n> conv;
  // Rows and columns added to y at the end, because several sizes of y fit one x. Less than the
  // stride.
  std::array<int64_t, n> output_padding{};
};

// `bias` may be undefined. Throw UsageError if shapes or types do not fit, or if this processor
// does not support bfloat16.
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                        const ConvTransposeAttrs<2>& attrs = {});
Tensor conv_transpose3d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                        const ConvTransposeAttrs<3>& attrs = {});

}  // namespace tidemark
