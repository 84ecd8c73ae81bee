// Sums two gradients of one tensor: out of place, so that it can be recomputed like any
// operator.
#pragma once

#include "ops/registry/op.h"

namespace tidemark {

extern const OpDef kAccumulate;
PreparedKernel prepare_accumulate_cpu(const OpQuery& query);

// a, b (same shape, contiguous) -> a + b
Tensor accumulate(const Tensor& a, const Tensor& b);

}  // namespace tidemark
