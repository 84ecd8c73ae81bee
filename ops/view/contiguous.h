// Copies that make tensors gapless.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// x with its elements in row-major order, without gaps, on a 64-byte boundary: x itself if it
// is so already, else a copy. Any type. dx = g.
Tensor contiguous(const Tensor& x);

// Tensors of one type behind one another along dimension d; the other extents are equal. Each
// gradient is a view of g. Throws UsageError if shapes or types differ, or there are none.
Tensor concat(std::initializer_list<Tensor> tensors, int64_t d);
// The reverse: x in `parts` of equal extent along dimension d, as views. The gradient is all of
// theirs behind one another: one copy, where a narrow() for each part would fill and add whole
// tensors. Throws UsageError if the extent cannot be divided so.
std::vector<Tensor> split(const Tensor& x, int64_t d, int64_t parts);

extern const OpDef kCopy;
extern const OpDef kConcat;

}  // namespace tidemark
