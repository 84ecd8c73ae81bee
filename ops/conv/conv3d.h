// Convolution of clips: conv2d with a third spatial dimension, time, in front.
//
//   y[n,o,p,q,k] = bias[k] + sum over t,r,s,c of
//                  x[n, o*stride + t*dilation - padding, p*..., q*..., c] * w[k,t,r,s,c]
//
// x (N, D, H, W, C), w (K, T, R, S, C / groups), bias (K) -> y (N, O, P, Q, K). Everything
// else, including gradients, is as in conv2d.h.
#pragma once

#include "ops/conv/attrs.h"
#include "ops/registry/op.h"

namespace tidemark {

// Time, vertical, horizontal.
using Conv3dAttrs = ConvAttrs<3>;
using Conv3dGradInputAttrs = ConvGradInputAttrs<3>;
using Conv3dGradWeightAttrs = ConvGradWeightAttrs<3>;

// `bias` may be undefined. Throws UsageError if shapes or types do not fit, or if this
// processor does not support bfloat16.
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
              const Conv3dAttrs& attrs = {});

extern const OpDef kConv3d;            // x, w[, bias] -> y
extern const OpDef kConv3dGradInput;   // gy, w -> gx
extern const OpDef kConv3dGradWeight;  // x, gy -> gw[, gbias]

}  // namespace tidemark
