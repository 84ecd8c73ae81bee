// Reductions over dimensions. Dimensions may be negative: -1 is the last.
//
// Inputs are float32. sum and mean also take bfloat16 and return float32; sum_to returns x's
// type.
//
// Partial sums are over ranges that the shapes alone decide, and are added in order, so the
// result is the same for any number of threads. Sums of up to a few hundred terms are in
// float32, larger ones in float64.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Over all elements: a scalar (rank 0). dx = g everywhere, as a view of g.
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);  // dx = g / n
// Over `dims`, which stay as extents of 1 if `keep`. Throws UsageError if a dimension does not
// exist or is named twice.
Tensor sum(const Tensor& x, std::initializer_list<int64_t> dims, bool keep = false);
Tensor mean(const Tensor& x, std::initializer_list<int64_t> dims, bool keep = false);

// Sums x over the dimensions along which `shape` was repeated to become x's shape: the gradient
// of broadcasting. Returns x itself if the shapes are equal. Throws UsageError if `shape` does
// not broadcast to x's.
Tensor sum_to(const Tensor& x, const Shape& shape);

// Over the last dimension, which must not be empty: (..., C) -> (...). max gives the largest
// value and the index of its first occurrence (int64); NaN counts as the largest. dx = g there,
// 0 elsewhere; indices have no gradient.
std::pair<Tensor, Tensor> max(const Tensor& x);
Tensor argmax(const Tensor& x);

// The number of rows of logits (N, C) whose largest value is at the row's label (N, int64): a
// scalar, int64. Logits may be bfloat16.
Tensor accuracy_count(const Tensor& logits, const Tensor& labels);

// The square root of the sum of squares of all elements: a scalar. Squares are summed in
// float64, so the norm is infinite only if it exceeds float32. x may be bfloat16. No gradient.
Tensor norm(const Tensor& x);
// The norm of all elements of 1 to 32 tensors of one type together, in one operator. Throws
// UsageError for another number of tensors, or if several are given and one has gaps.
Tensor norm(std::span<const Tensor> tensors);
// The norm of the union of tensors whose norms are given. Throws UsageError if `norms` is
// empty.
Tensor join_norms(std::span<const Tensor> norms);

extern const OpDef kSum;  // scalar 0: a factor
extern const OpDef kMax;
extern const OpDef kMaxGrad;
extern const OpDef kArgmax;
extern const OpDef kAccuracyCount;
extern const OpDef kNorm;  // 1 to 32 tensors
extern const OpDef kJoinNorms;

}  // namespace tidemark
