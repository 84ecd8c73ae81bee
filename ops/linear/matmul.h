// The product of two matrices, or of each pair in two batches; either operand may be given
// transposed.
//
// a (..., M, K), or (..., K, M) if transpose_a; b (..., K, N), or (..., N, K) if transpose_b ->
// y (..., M, N) = a b [+ bias], contiguous; bias (N) is added to every row. The leading
// dimensions of a and b must be equal; expand() repeats an operand without a copy.
//
// a and b are both float32 or both bfloat16, and y has their type; bias and gbias are float32.
// Products are accumulated in float32.
//
// A view is used in place if one of its last two dimensions is gapless; permute(x, {0, 2, 1,
// 3}), the heads of attention, therefore needs no copy. Other views are copied first.
//
// Gradients, for a and b as they enter the product: ga = gy b^T, gb = a^T gy, gbias = gy summed
// over all but N. The gradient of a transposed operand is computed transposed, so no operand is
// ever copied for it.
#pragma once

#include <cstdint>

#include "ops/registry/op.h"

namespace tidemark {

struct MatmulAttrs {
  int64_t transpose_a = 0;
  int64_t transpose_b = 0;
};

// `bias` may be undefined. Throws UsageError if shapes or types do not fit, or if this
// processor does not support bfloat16.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false,
              bool transpose_b = false, const Tensor& bias = {});

extern const OpDef kMatmul;  // a, b[, bias] -> y

PreparedKernel prepare_matmul_cpu(const OpQuery& query);
// For operators that consist of products: y may be float32 where a and b are bfloat16; with
// `add`, which excludes a bias, the product is added to y.
PreparedKernel prepare_product_cpu(const OpQuery& query, bool add);

}  // namespace tidemark
