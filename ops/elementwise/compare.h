// Comparison, selection and conversion, with broadcasting; outputs are contiguous.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// The result is bool. a and b have one type: float32, bfloat16, int64, int32, uint8 or bool.
// NaN equals nothing. No gradient.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);

// a where `condition` (bool) is true, else b; both float32. da = g where condition; db = g
// elsewhere.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// Converts between float32, bfloat16, int64, int32, uint8 and bool. To bfloat16: rounds to the
// nearest, ties to even. To integers: drops the fraction; out-of-range values give unspecified
// results. Returns x itself if it already has that type. dx = g, cast back; no gradient through
// integers and bool.
Tensor cast(const Tensor& x, DType dtype);

extern const OpDef kEq;
extern const OpDef kGt;
extern const OpDef kWhere;
extern const OpDef kWhereGrad;
extern const OpDef kWhereOtherGrad;
extern const OpDef kCast;

}  // namespace tidemark
