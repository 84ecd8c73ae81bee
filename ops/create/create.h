// New tensors, contiguous, without inputs. They can be recomputed like any operator's output.
// Throws UsageError for negative extents.
#pragma once

#include <cstdint>

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// `dtype` is float32, int64, int32, uint8 or bool.
Tensor full(const Shape& shape, double value, DType dtype = DType::kFloat32);
Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32);
Tensor ones(const Shape& shape, DType dtype = DType::kFloat32);
// 0, 1, ... n - 1: (n), int64.
Tensor arange(int64_t n);

extern const OpDef kFill;  // scalar 0: the value
extern const OpDef kArange;

}  // namespace tidemark
