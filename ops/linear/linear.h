// A fully connected layer: y = x w^T + bias, over the last dimension.
//
// x (..., I), w (O, I), bias (O) -> y (..., O). Gradients: gx = gy w; gw = gy^T x and gbias =
// gy, both summed over all but the last dimension. Each takes one matmul (matmul.h).
#pragma once

#include "ops/registry/op.h"

namespace tidemark {

// `bias` may be undefined. Throws UsageError if shapes do not fit.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {});

}  // namespace tidemark
