// y = max(x, 0); dx = g where y > 0, else 0. NaN stays NaN and has no gradient. Batch norm with
// a residual (ops/norm) ends in the same ReLU, with the same signs and gradient.
//
// x float32 or bfloat16 -> y contiguous, of x's shape and type, and signs: int32 (ceil(elements
// / 32)), bit j of word w set where y > 0 at element 32 w + j, in row-major order; bits beyond
// the last element are 0.
//
// Backward reads the signs, an element's bit instead of its 2 or 4 bytes, so y may be freed
// once its other readers have run. Variants of it read y or x, to the same bits (but a
// signalling NaN in a bfloat16 g, which no computation makes, may come out quiet): larger, but
// a schedule may have one of them anyway.
//
// Source: Jain et al., Gist, 2018 (Binarize).
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if x is not float32 or bfloat16.
Tensor relu(const Tensor& x);

extern const OpDef kRelu;              // x, contiguous -> y, signs
extern const OpDef kReluGrad;          // g, contiguous, and signs -> dx
extern const OpDef kReluGradByValues;  // g, and y or x -> dx

inline constexpr int64_t kSignsPerWord = 32;
// Of a tensor of this shape.
TensorMeta signs_of(const Shape& shape);
// Words are little-endian, so that a byte holds the signs of eight elements. Bytes of whole
// words.
inline constexpr int kSignsPerByte = 8;
inline int64_t sign_bytes(int64_t elements) {
  return (elements + kSignsPerWord - 1) / kSignsPerWord * (kSignsPerWord / kSignsPerByte);
}

}  // namespace tidemark
