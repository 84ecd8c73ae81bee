// Random tensors and dropout, from the session's stream of random numbers (numbers.h).
//
// A call reserves its numbers when it is issued; seed and offset belong to the call, so running
// it again, for recomputation or in another order, gives the same values.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

Tensor uniform(const Shape& shape, double low = 0, double high = 1);  // float32, in [low, high)
Tensor normal(const Shape& shape, double mean = 0, double deviation = 1);  // float32

// Each element is 0 with probability p, else x / (1 - p). float32 or bfloat16, output
// contiguous.
// dx = g under the same mask, which is drawn again rather than kept. Throws UsageError unless
// 0 <= p < 1. With p = 0, x itself.
Tensor dropout(const Tensor& x, double p);

// Scalar 0: the offset. Uniform: 1 low, 2 high; normal: 1 mean, 2 deviation.
extern const OpDef kUniform;
extern const OpDef kNormal;
extern const OpDef kDropout;

}  // namespace tidemark
