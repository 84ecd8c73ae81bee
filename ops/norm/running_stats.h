// Updates the running statistics of batch normalisation in place, from the statistics of a
// batch with `count` values per channel:
//
//   running_mean += momentum * (mean - running_mean)
//   running_var  += momentum * (var * count / (count - 1) - running_var)     (unbiased)
//
// All are (C). `count` must be at least 2. Not differentiable. Source: PyTorch's BatchNorm.
#pragma once

#include "ops/registry/op.h"

namespace tidemark {

// Throws UsageError if shapes do not fit, views have gaps, or count < 2.
void update_running_stats_(const Tensor& running_mean, const Tensor& running_var,
                           const Tensor& mean, const Tensor& var, double momentum,
                           int64_t count);

// running_mean, running_var (both written), mean, var; scalars: momentum, count / (count - 1)
extern const OpDef kUpdateRunningStats;

void update_running_stats_cpu(const KernelArgs& args);

}  // namespace tidemark
