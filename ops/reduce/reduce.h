// Sums and the like over dimensions. Dimensions may be negative: -1 is the last.
//
// Of float32; sum and mean of bfloat16 too, and their results are float32 (sum_to: of x's
// type).
//
// Partial sums are over ranges that the shapes alone decide, and are added in order, so that
// the result is the same whatever the number of threads. Sums are kept in float32 over at most
// a few hundred terms and in float64 above.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Over all elements: a scalar (rank 0). dx = g everywhere, a view of g.
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);  // dx = g / n
// Over `dims`, which stay as extents of 1 if `keep`. Throws UsageError for one that is not
// there, or is named twice.
Tensor sum(const Tensor& x, std::initializer_list<int64_t> dims, bool keep = false);
Tensor mean(const Tensor& x, std::initializer_list<int64_t> dims, bool keep = false);

// x summed over the dimensions along which `shape` was repeated to become x's: the gradient of
// broadcasting. x itself if the shapes are equal. Throws UsageError if `shape` does not
// broadcast to x's.
Tensor sum_to(const Tensor& x, const Shape& shape);

// Over the last dimension, which must not be empty: (..., C) -> (...).
// The largest value and (int64) where it is first; NaN counts as larger than all. dx = g there,
// 0 elsewhere; indices have no gradient.
std::pair<Tensor, Tensor> max(const Tensor& x);
Tensor argmax(const Tensor& x);

// How many rows of logits (N, C) have their largest value at labels (N, int64): a scalar,
// int64. Logits may be bfloat16.
Tensor accuracy_count(const Tensor& logits, const Tensor& labels);

// The square root of the sum of squares of all elements: a scalar. Squares are summed in
// float64, so it is infinite only where it is no float32. No gradient.
Tensor norm(const Tensor& x);
// Of the elements of all tensors together, in one operator. Throws UsageError unless they are 1
// to 32, gapless if they are several.
Tensor norm(std::span<const Tensor> tensors);
// Of what has these norms: theirs. Throws UsageError if there are none.
Tensor join_norms(std::span<const Tensor> norms);

extern const OpDef kSum;  // scalar 0: a factor
extern const OpDef kMax;
extern const OpDef kMaxGrad;
extern const OpDef kArgmax;
extern const OpDef kAccuracyCount;
extern const OpDef kNorm;  // 1 to 32 tensors
extern const OpDef kJoinNorms;

}  // namespace tidemark
