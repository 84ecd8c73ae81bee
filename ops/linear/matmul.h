// The product of two matrices, either of which may be given transposed; or of each pair of two
// batches of them.
//
// a (..., M, K), or (..., K, M) if transpose_a; b (..., K, N), or (..., N, K) if transpose_b ->
// y (..., M, N) = a b [+ bias], contiguous; bias (N) is added to every row. The leading
// dimensions of a and b are the same; expand() repeats one of them without a copy.
//
// a and b are float32 or bfloat16, both, and y with them; bias is float32, and so is gbias.
// Products are added up in float32.
//
// Views are taken as they lie if one of their last two dimensions is gapless, so the heads of
// attention, permute(x, {0, 2, 1, 3}), need no copy; others are copied first.
//
// Gradients, of a and b as they enter the product: ga = gy b^T, gb = a^T gy, gbias = gy summed
// over all but N. A gradient of a transposed operand is computed transposed; no operand is ever
// copied for it.
#pragma once

#include <cstdint>

#include "ops/registry/op.h"

namespace tidemark {

struct MatmulAttrs {
  int64_t transpose_a = 0;
  int64_t transpose_b = 0;
};

// `bias` may be undefined. Throws UsageError if shapes or types do not fit, or this
// processor has no bfloat16.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false,
              bool transpose_b = false, const Tensor& bias = {});

extern const OpDef kMatmul;  // a, b[, bias] -> y

PreparedKernel prepare_matmul_cpu(const OpQuery& query);

}  // namespace tidemark
