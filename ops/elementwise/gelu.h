// Gaussian error linear unit, exact or approximate.
//
//   exact: y = x P(x), P the standard normal distribution: (1 + erf(x / sqrt 2)) / 2
//          dx = g (P(x) + x p(x)),  p(x) = e^(-x^2 / 2) / sqrt(2 pi)
//   tanh:  y = x (1 + tanh u) / 2,  u = sqrt(2 / pi) (x + 0.044715 x^3)
//          dx = g (s + x s (1 - s) 2 du/dx),  s = (1 + tanh u) / 2 = 1 / (1 + e^-2u)
//
// x of any shape -> y of the same shape, contiguous. Saves only x. x is float32 or bfloat16,
// and y has its type; other types throw UsageError. Source: Hendrycks and Gimpel, Gaussian
// Error Linear Units, 2016. BERT uses the exact form, GPT-2 the approximation.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

enum class GeluKind : uint8_t { kExact, kTanh };

Tensor gelu(const Tensor& x, GeluKind kind = GeluKind::kExact);

struct GeluAttrs {
  int64_t tanh = 0;  // 1: the approximation
};

extern const OpDef kGelu;      // x -> y
extern const OpDef kGeluGrad;  // g, x -> dx

}  // namespace tidemark
