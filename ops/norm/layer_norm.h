// Layer normalisation over the last dimension.
//
//   mean, var of each row of C values (var biased);  rstd = 1 / sqrt(var + eps)
//   y = (x - mean) * rstd * gamma + beta
//
// x (..., C), gamma (C), beta (C) -> y like x, mean (...), rstd (...). x is float32 or
// bfloat16, and so are y and gx; all else is float32.
//
// Gradients, with h = (x - mean) * rstd and g = gy * gamma, means over a row:
//   gx = rstd * (g - mean(g) - h * mean(g * h));  ggamma = sum over rows gy * h;
//   gbeta = sum over rows gy
// Saved: x, gamma, mean and rstd. Sums over rows are split into stretches that depend on the
// shape alone, and are added in order, so they are the same for any number of threads.
//
// Source: Ba, Kiros and Hinton, Layer Normalization, 2016.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if shapes or types do not fit, or x is empty.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5);

struct LayerNormAttrs {
  double eps = 1e-5;
};

extern const OpDef kLayerNorm;      // x, gamma, beta -> y, mean, rstd
extern const OpDef kLayerNormGrad;  // x, gy, gamma, mean, rstd -> gx, ggamma, gbeta

PreparedKernel prepare_layer_norm_cpu(const OpQuery& query);
PreparedKernel prepare_layer_norm_grad_cpu(const OpQuery& query);

}  // namespace tidemark
