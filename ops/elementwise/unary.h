// Operators on one tensor: y = f(x), contiguous, of x's shape and type.
//
// g is the gradient of y. x is float32, or, except for abs, exp, log and sqrt, bfloat16
// (computed in float32). Throws UsageError for other types.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

Tensor scale(const Tensor& x, double s);  // s x; dx = s g
Tensor neg(const Tensor& x);              // dx = -g
Tensor abs(const Tensor& x);              // dx = g sign(x), 0 at 0
Tensor exp(const Tensor& x);              // dx = g y
Tensor log(const Tensor& x);              // natural; dx = g / x
Tensor sqrt(const Tensor& x);             // dx = g / 2y
Tensor tanh(const Tensor& x);             // dx = g (1 - y^2)
Tensor sigmoid(const Tensor& x);          // 1 / (1 + e^-x); dx = g y (1 - y)
// min(max(x, 0), 6); dx = g where 0 < y < 6; keeps y. A variant of the gradient reads x.
Tensor relu6(const Tensor& x);
// x / (1 + e^-x); dx = g (s + x s (1 - s)), s = 1 / (1 + e^-x); keeps x. Elfwing et al. 2018
// (arXiv:1702.03118), also known as swish.
Tensor silu(const Tensor& x);

extern const OpDef kScale;
extern const OpDef kNeg;
extern const OpDef kAbs;
extern const OpDef kAbsGrad;
extern const OpDef kExp;
extern const OpDef kLog;
extern const OpDef kSqrt;
extern const OpDef kSqrtGrad;
extern const OpDef kTanh;
extern const OpDef kTanhGrad;
extern const OpDef kSigmoid;
extern const OpDef kSigmoidGrad;
extern const OpDef kRelu6;
extern const OpDef kRelu6Grad;
extern const OpDef kSilu;
extern const OpDef kSiluGrad;

}  // namespace tidemark
