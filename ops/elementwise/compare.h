// Comparison, selection and conversion, with broadcasting; outputs are contiguous.
#pragma once

#include "ops/registry/op.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// bool; a and b of one type: float32, bfloat16, int64, int32, uint8 or bool. NaN equals
// nothing. No gradient.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);

// a where `condition` (bool), else b (float32). da = g where condition; db = g elsewhere.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// To and from float32, bfloat16, int64, int32, uint8, bool. To bfloat16 rounds to the nearest,
// ties to even; to integers drops the fraction, and values out of range give no particular
// result. x itself if it is of that type already. dx = g, cast back; none to integers and bool.
Tensor cast(const Tensor& x, DType dtype);

extern const OpDef kEq;
extern const OpDef kGt;
extern const OpDef kWhere;
extern const OpDef kWhereGrad;
extern const OpDef kWhereOtherGrad;
extern const OpDef kCast;

}  // namespace tidemark
