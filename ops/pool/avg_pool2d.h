// The mean of each window.
//
// avg_pool2d: x (N, H, W, C) -> y (N, P, Q, C), P = (H + 2*padding - window) / stride + 1. With
// count_include_pad, padding counts as zeros; otherwise the mean is over the real cells only.
// adaptive_avg_pool2d: P and Q are given; window i covers [floor(i*H/P), ceil((i+1)*H/P)).
//
// Gradient: gx[h,w] is the sum of gy / cells over the windows that cover (h, w). Nothing is
// saved.
#pragma once

#include "ops/pool/windows.h"
#include "ops/registry/op.h"

namespace tidemark {

// Throw UsageError if the windows do not fit.
Tensor avg_pool2d(const Tensor& x, const Pool2dAttrs& attrs, bool count_include_pad = true);
Tensor adaptive_avg_pool2d(const Tensor& x, int64_t height, int64_t width);

struct AvgPool2dAttrs {
  Pool2dAttrs pool;               // unused where adaptive
  int64_t count_include_pad = 1;  // unused where adaptive
  int64_t adaptive = 0;
  int64_t height = 0;  // adaptive: of y; in the gradient: of x
  int64_t width = 0;
};

extern const OpDef kAvgPool2d;      // x -> y
extern const OpDef kAvgPool2dGrad;  // gy -> gx

PreparedKernel prepare_avg_pool2d_cpu(const OpQuery& query);
PreparedKernel prepare_avg_pool2d_grad_cpu(const OpQuery& query);

}  // namespace tidemark
