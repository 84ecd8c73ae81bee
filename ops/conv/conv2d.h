// Convolution of images (cross-correlation, as in all deep-learning frameworks).
//
//   y[n,p,q,k] = bias[k] + sum over r,s,c of
//                x[n, p*stride + r*dilation - padding, q*..., c] * w[k,r,s,c]
//
// x (N, H, W, C), w (K, R, S, C / groups), bias (K) -> y (N, P, Q, K), with
// P = (H + 2*padding - dilation*(R-1) - 1) / stride + 1. Group g of the inputs, C / groups
// channels, makes group g of the outputs, K / groups channels.
//
// Gradients: of x, the transposed convolution of gy with w; of w, the correlation of x with gy;
// of bias, gy summed over N, P, Q. Each is an operator of its own, run only if it is wanted.
// Direct convolution always: the algorithm does not depend on anything but the signature.
#pragma once

#include <array>
#include <cstdint>

#include "ops/registry/op.h"

namespace tidemark {

// Vertical, horizontal.
struct Conv2dAttrs {
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> padding{0, 0};
  std::array<int64_t, 2> dilation{1, 1};
  int64_t groups = 1;
};

// `bias` may be undefined. Throws UsageError if shapes do not fit.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
              const Conv2dAttrs& attrs = {});

struct Conv2dGradInputAttrs {
  Conv2dAttrs conv;
  int64_t height = 0;  // of x
  int64_t width = 0;
};
struct Conv2dGradWeightAttrs {
  Conv2dAttrs conv;
  int64_t height = 0;  // of w
  int64_t width = 0;
  int64_t bias = 0;  // 1: give the gradient of bias too
};

extern const OpDef kConv2d;            // x, w[, bias] -> y
extern const OpDef kConv2dGradInput;   // gy, w -> gx
extern const OpDef kConv2dGradWeight;  // x, gy -> gw[, gbias]

// CPU kernels (oneDNN).
PreparedKernel prepare_conv2d_cpu(const OpQuery& query);
PreparedKernel prepare_conv2d_grad_input_cpu(const OpQuery& query);
PreparedKernel prepare_conv2d_grad_weight_cpu(const OpQuery& query);

}  // namespace tidemark
