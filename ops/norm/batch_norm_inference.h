// Batch normalisation with given statistics, optionally with a residual addition and ReLU (see
// batch_norm.h).
//
//   y = (x - running_mean) * inv * gamma + beta, inv = 1 / sqrt(running_var + eps);
//   batch_norm_inference_relu: max(0, that [+ residual])
//
// x (..., C), the others (C)[, residual like x] -> y like x.
// Gradients as in batch_norm.h, but gx = gamma * inv * g; the statistics get no gradient.
#pragma once

#include "ops/norm/batch_norm.h"

namespace tidemark {

Tensor batch_norm_inference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                            const Tensor& running_mean, const Tensor& running_var,
                            double eps = 1e-5);
// `residual` may be undefined.
Tensor batch_norm_inference_relu(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                 const Tensor& running_mean, const Tensor& running_var,
                                 double eps = 1e-5, const Tensor& residual = {});

extern const OpDef
    kBatchNormInference;  // BatchNormAttrs: x, gamma, beta, mean, var[, residual]

PreparedKernel prepare_batch_norm_inference_cpu(const OpQuery& query);

}  // namespace tidemark
