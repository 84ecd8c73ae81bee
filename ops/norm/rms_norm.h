// Normalisation by the root mean square over the last dimension.
//
//   rstd = 1 / sqrt(mean(x^2) + eps) of each row of C values;  y = x * rstd * weight
//
// x (..., C), weight (C) -> y like x, rstd (...). x is float32 or bfloat16, and so are y and
// gx; all else is float32, and so is the computation.
//
// Gradients, with h = x * rstd and g = gy * weight, means over a row:
//   gx = rstd * (g - h * mean(g * h));  gweight = sum over rows gy * h
// Saved: x, weight and rstd. gweight is computed only if the weight needs a gradient. Sums over
// rows are split into stretches that depend on the shape alone, and are added in order, so they
// are the same for any number of threads.
//
// Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if shapes or types do not fit, or x is empty.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6);

struct RmsNormAttrs {
  double eps = 1e-6;
};
struct RmsNormGradAttrs {
  int64_t frozen = 0;  // 1: the weight needs no gradient; gx is the only output
};

extern const OpDef kRmsNorm;      // x, weight -> y, rstd
extern const OpDef kRmsNormGrad;  // x, gy, weight, rstd -> gx[, gweight]

PreparedKernel prepare_rms_norm_cpu(const OpQuery& query);
PreparedKernel prepare_rms_norm_grad_cpu(const OpQuery& query);

}  // namespace tidemark
