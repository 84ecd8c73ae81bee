// The gated half of a SwiGLU layer.
//
//   y = silu(gate) * up,  silu(v) = v s(v),  s(v) = 1 / (1 + e^-v)
//   dgate = g up (s + gate s (1 - s)),  dup = g silu(gate),  s = s(gate)
//
// gate and up of one shape -> y of that shape, contiguous. Saves gate and up only: silu(gate)
// is computed again in the backward pass, where one operator makes both gradients. All are
// float32 or all bfloat16 (computed in float32).
//
// Source: Shazeer, GLU Variants Improve Transformer, 2020.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Throws UsageError if shapes or types do not fit.
Tensor silu_mul(const Tensor& gate, const Tensor& up);

extern const OpDef kSiluMul;      // gate, up -> y
extern const OpDef kSiluMulGrad;  // g, gate, up -> dgate, dup

}  // namespace tidemark
