// Copies that make tensors contiguous.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// x in row-major order, without gaps, aligned to 64 bytes: x itself if it already is, else a
// copy. Any type. dx = g.
Tensor contiguous(const Tensor& x);

// Joins tensors of one type along dimension d; their other extents must be equal. Each gradient
// is a view of g. Throws UsageError if shapes or types differ, or if `tensors` is empty.
Tensor concat(std::initializer_list<Tensor> tensors, int64_t d);
// The reverse of concat: `parts` views of equal extent along dimension d. The gradient joins
// the parts' gradients in one copy, where a narrow() for each part would fill and add whole
// tensors. Throws UsageError if `parts` does not divide the extent.
std::vector<Tensor> split(const Tensor& x, int64_t d, int64_t parts);

extern const OpDef kCopy;
extern const OpDef kConcat;

}  // namespace tidemark
