// Views: the same elements under another shape, without a kernel or memory of their own.
//
// Each is differentiable; its gradient is the reverse view of the output's, except where a
// formula is given. Dimensions may be negative: -1 is the last. Throws UsageError where the
// arguments do not fit the shape.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// The same elements in row-major order. One extent may be -1 and is then inferred. Makes a copy
// (see contiguous.h) if x is not contiguous.
Tensor reshape(const Tensor& x, const Shape& shape);
// Merges all dimensions from `start` on: (N, H, W, C) -> (N, H W C).
Tensor flatten(const Tensor& x, int64_t start = 1);
Tensor transpose(const Tensor& x, int64_t a, int64_t b);
// Dimension i of the result is dimension dims[i] of x.
Tensor permute(const Tensor& x, std::initializer_list<int64_t> dims);
// Elements [start, start + length) of dimension d. dx = g there, 0 elsewhere.
Tensor narrow(const Tensor& x, int64_t d, int64_t start, int64_t length);
// Broadcast to `shape` without copying. dx = g summed over the repeated dimensions.
Tensor expand(const Tensor& x, const Shape& shape);
// squeeze removes dimension d, which must have extent 1; unsqueeze inserts one before d (-1: at
// the end).
Tensor squeeze(const Tensor& x, int64_t d);
Tensor unsqueeze(const Tensor& x, int64_t d);

extern const OpDef kNarrowGrad;

}  // namespace tidemark
