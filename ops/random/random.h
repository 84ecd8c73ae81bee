// Random tensors and dropout, from the session's stream of random numbers (numbers.h).
//
// A call reserves its numbers when it is issued. Seed and offset belong to the call, so running
// it again (in recomputation or in another order) gives the same values.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

Tensor uniform(const Shape& shape, double low = 0, double high = 1);  // float32, in [low, high)
Tensor normal(const Shape& shape, double mean = 0, double deviation = 1);  // float32

// Each element is 0 with probability p, else x / (1 - p). x is float32 or bfloat16; the output
// is contiguous. dx = g under the same mask, which backward draws again rather than keeping it.
// Throws UsageError unless 0 <= p < 1. Returns x itself if p = 0.
Tensor dropout(const Tensor& x, double p);

// Scalar 0: the offset. Uniform: 1 low, 2 high; normal: 1 mean, 2 deviation.
extern const OpDef kUniform;
extern const OpDef kNormal;
extern const OpDef kDropout;

}  // namespace tidemark
