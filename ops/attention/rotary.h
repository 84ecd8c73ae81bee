// Rotary position embedding: turns each pair of elements (i, i + D/2) of a head by an angle
// that its position decides, so that a product of a query and a key depends on their distance.
//
//   y[i]       = x[i] cos[i] - x[i + D/2] sin[i]
//   y[i + D/2] = x[i + D/2] cos[i] + x[i] sin[i]        i in [0, D/2)
//
// x (B, T, H, D), D even -> y (B, T, H, D), contiguous, in the layout of attention.h: strides
// are free except that the last dimension's must be 1 (other views are copied first). cos and
// sin are tables (T, D/2), or (B, T, D/2) where sequences have positions of their own; they are
// float32 and get no gradient. x is float32 or bfloat16 (computed in float32).
//
// Rows of tables (L, D/2) by position are embedding(cos, positions) and embedding(sin,
// positions) (ops/embedding), with positions (B, T) int32 or int64.
//
// The gradient turns back: the same operator with -sin. Nothing of x is saved.
//
// Source: Su et al., RoFormer, 2021. The pairs are those of Hugging Face's Llama, which
// permutes the projections' rows to match; the paper pairs neighbours.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if shapes or types do not fit, or a tensor is empty.
Tensor rotary(const Tensor& x, const Tensor& cos, const Tensor& sin);

struct RotaryAttrs {
  int64_t inverse = 0;  // 1: by the opposite angles, as the gradient does
};

extern const OpDef kRotary;  // x, cos, sin -> y

}  // namespace tidemark
