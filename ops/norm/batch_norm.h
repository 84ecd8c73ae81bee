// Batch normalisation, optionally with a following residual addition and activation f.
//
//   mean[c], var[c] over N, H, W (var biased);  inv[c] = 1 / sqrt(var[c] + eps)
//   y = f((x - mean) * inv * gamma + beta [+ residual])
//
// A residual needs a ReLU.
//
// x (..., C), gamma (C), beta (C)[, residual like x] -> y like x, mean (C), var (C). x and
// tensors like it are float32 or bfloat16. Everything per channel is float32, and the
// computation uses float32. With a residual also the signs of y, an element's bit each
// (ops/elementwise/relu.h).
//
// Two operators: one for mean and var, one for y. Mean and var are small and stay, so making y
// again takes one pass over x, not two. Both are pure: a separate operator updates the running
// statistics (running_stats.h), so recomputation does not change them.
//
// Gradients, with g = gy f' (ReLU: gy where y > 0, else 0) and M = elements of x / C:
//   gbeta = sum g;  ggamma = sum g * (x - mean) * inv;  gresidual = g
//   gx = gamma * inv * (g - gbeta / M - (x - mean) * inv * ggamma / M)
// With given statistics (inference), which get no gradient: gx = gamma * inv * g.
// Saved: x, mean, var and gamma; for an activation also beta, because f' is recomputed from x;
// for ReLU after a residual, the signs of y instead. Nothing between the normalisation and f is
// stored. For ReLU after a residual, ReLU's own gradient computes g, which is itself the
// residual's gradient. Thus no operator works on more than three tensors of x's size at once,
// and y may be freed once the next layer's gradients have been computed.
//
// Source: Ioffe and Szegedy, Batch Normalization, 2015, algorithm 1 and section 3.
#pragma once

#include "ops/elementwise/activation.h"
#include "ops/registry/op.h"

namespace tidemark {

struct BatchNormResult {
  Tensor y;
  Tensor mean;  // no gradient flows through mean or var
  Tensor var;
};

// Throw UsageError if shapes do not fit. `residual` may be undefined.
BatchNormResult batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                           double eps = 1e-5, Activation activation = Activation::kNone,
                           const Tensor& residual = {});
// With given statistics.
Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                            const Tensor& running_mean, const Tensor& running_var,
                            double eps = 1e-5, Activation activation = Activation::kNone,
                            const Tensor& residual = {});

// `activation`: an Activation.
struct BatchNormAttrs {
  double eps = 1e-5;
  int64_t activation = 0;
};
struct BatchNormGradAttrs {
  double eps = 1e-5;
  int64_t activation = 0;  // not kNone: the sixth input is beta
  int64_t frozen = 0;      // 1: mean and var do not depend on x: gx = gamma * inv * g
};

extern const OpDef kBatchMoments;   // x -> mean, var
extern const OpDef kBatchNorm;      // x, gamma, beta, mean, var[, residual] -> y[, signs]
extern const OpDef kBatchNormGrad;  // x, gy, gamma, mean, var[, beta] -> gx, ggamma, gbeta

PreparedKernel prepare_batch_moments_cpu(const OpQuery& query);
PreparedKernel prepare_batch_norm_cpu(const OpQuery& query);
PreparedKernel prepare_batch_norm_grad_cpu(const OpQuery& query);

}  // namespace tidemark
