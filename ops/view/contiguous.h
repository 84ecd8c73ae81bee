// Copies that make tensors gapless.
#pragma once

#include <initializer_list>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// x with its elements in row-major order, without gaps, on a 64-byte boundary: x itself if it
// is so already, else a copy. Any type. dx = g.
Tensor contiguous(const Tensor& x);

// Tensors of one type behind one another along dimension d; the other extents are equal. Each
// gradient is a view of g. Throws UsageError if shapes or types differ, or there are none.
Tensor concat(std::initializer_list<Tensor> tensors, int64_t d);

extern const OpDef kCopy;
extern const OpDef kConcat;

}  // namespace tidemark
