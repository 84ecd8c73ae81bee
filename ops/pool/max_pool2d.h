// The largest value of each window; NaN counts as the largest.
//
// x (N, H, W, C) -> y (N, P, Q, C) and index (N, P, Q, C), the position of the largest cell in
// its window: row by row, padding counted; uint8 for windows of at most 256 cells, else int32.
// The first of equal values wins. P = (H + 2*padding - window) / stride + 1.
//
// Gradient: gx[h,w] is the sum of gy over the windows whose index points to (h, w). Saves only
// index. A variant of it finds the index again from x, to the same bits.
//
// max_pool3d, for clips, has a third spatial dimension, time, in front: x (N, D, H, W, C) -> y
// (N, O, P, Q, C). It pools each frame, then time, so the first of equal values in the order of
// d, h, w wins, as if the window were searched at once.
#pragma once

#include "ops/pool/windows.h"
#include "ops/registry/op.h"

namespace tidemark {

// Both throw UsageError if the window does not fit, or if padding is more than half the window.
Tensor max_pool2d(const Tensor& x, const Pool2dAttrs& attrs);

// Time, vertical, horizontal.
struct Pool3dAttrs {
  int64_t window[3] = {2, 2, 2};
  int64_t stride[3] = {2, 2, 2};
  int64_t padding[3] = {0, 0, 0};
};
Tensor max_pool3d(const Tensor& x, const Pool3dAttrs& attrs);

struct Pool2dGradAttrs {
  Pool2dAttrs pool;
  int64_t height = 0;  // of x
  int64_t width = 0;
};

extern const OpDef kMaxPool2d;               // x -> y, index
extern const OpDef kMaxPool2dGrad;           // gy, index -> gx
extern const OpDef kMaxPool2dGradFromInput;  // gy, x -> gx

PreparedKernel prepare_max_pool2d_cpu(const OpQuery& query);
PreparedKernel prepare_max_pool2d_grad_cpu(const OpQuery& query);
// The kernels of the other two on that backend, one after the other.
PreparedKernel prepare_max_pool2d_grad_from_input(const OpQuery& query, Backend backend);

}  // namespace tidemark
