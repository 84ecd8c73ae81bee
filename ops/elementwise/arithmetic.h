// Two tensors of one type, broadcast to one shape: y = f(a, b), contiguous.
//
// Gradients are summed over the dimensions along which an input was repeated. Each operator
// saves for backward what its formula names, and nothing for inputs that need no gradient.
// Throws UsageError if the shapes do not broadcast, or unless both types are float32 or, except
// for div, both bfloat16 (computed in float32).
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

Tensor add(const Tensor& a, const Tensor& b);  // da = g; db = g
Tensor sub(const Tensor& a, const Tensor& b);  // da = g; db = -g
Tensor mul(const Tensor& a, const Tensor& b);  // da = g b; db = g a
Tensor div(const Tensor& a, const Tensor& b);  // da = g / b; db = -g y / b
// a + s b; the product is rounded first. da = g; db = s g
Tensor add_scaled(const Tensor& a, const Tensor& b, double s);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }

extern const OpDef kAdd;
extern const OpDef kSub;
extern const OpDef kMul;
extern const OpDef kDiv;
extern const OpDef kDivGrad;
extern const OpDef kAddScaled;

}  // namespace tidemark
