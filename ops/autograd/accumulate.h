// Sums two gradients of one tensor. The sum is out of place, so it can be recomputed like any
// operator's output.
#pragma once

#include "ops/registry/op.h"

namespace tidemark {

extern const OpDef kAccumulate;
PreparedKernel prepare_accumulate_cpu(const OpQuery& query);

// a, b (same shape, contiguous) -> a + b
Tensor accumulate(const Tensor& a, const Tensor& b);

}  // namespace tidemark
