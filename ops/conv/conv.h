// Convolution of images and of clips (cross-correlation, as in all deep-learning frameworks).
//
//   y[n,p,q,k] = bias[k] + sum over r,s,c of
//                x[n, p*stride + r*dilation - padding, q*..., c] * w[k,r,s,c]
//
// x (N, H, W, C), w (K, R, S, C / groups), bias (K) -> y (N, P, Q, K), with
// P = (H + 2*padding - dilation*(R-1) - 1) / stride + 1. Input group g (C / groups channels)
// produces output group g (K / groups channels).
//
// Gradients: for x, the transposed convolution of gy with w; for w, the correlation of x with
// gy; for bias, gy summed over N, P, Q. Each gradient is a separate operator, run only if it is
// wanted. x and w are both float32 or both bfloat16; y and the gradients of x and w have the
// same type. bias and its gradient are float32. Products are accumulated in float32.
//
// conv3d, for clips, has a third spatial dimension, time, in front:
//
//   y[n,o,p,q,k] = bias[k] + sum over t,r,s,c of
//                  x[n, o*stride + t*dilation - padding, p*..., q*..., c] * w[k,t,r,s,c]
//
// x (N, D, H, W, C), w (K, T, R, S, C / groups), bias (K) -> y (N, O, P, Q, K).
//
// The algorithm depends only on the signature, and on the session's table of algorithms
// (SessionOptions::algorithms), if it has one.
#pragma once

#include "ops/conv/attrs.h"
#include "ops/registry/op.h"

namespace tidemark {

// Attributes by dimension: vertical, horizontal; for clips time, vertical, horizontal.
using Conv2dAttrs = ConvAttrs<2>;
using Conv2dGradInputAttrs = ConvGradInputAttrs<2>;
using Conv2dGradWeightAttrs = ConvGradWeightAttrs<2>;
using Conv3dAttrs = ConvAttrs<3>;
using Conv3dGradInputAttrs = ConvGradInputAttrs<3>;
using Conv3dGradWeightAttrs = ConvGradWeightAttrs<3>;

// `bias` may be undefined. Throws UsageError if shapes or types do not fit, or if this
// processor does not support bfloat16.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
              const Conv2dAttrs& attrs = {});
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
              const Conv3dAttrs& attrs = {});

extern const OpDef kConv2d;            // x, w[, bias] -> y
extern const OpDef kConv2dGradInput;   // gy, w -> gx
extern const OpDef kConv2dGradWeight;  // x, gy -> gw[, gbias]
extern const OpDef kConv3d;
extern const OpDef kConv3dGradInput;
extern const OpDef kConv3dGradWeight;

}  // namespace tidemark
