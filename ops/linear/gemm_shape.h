// A product of row-major matrices as libraries of column-major ones see it.
//
// A row-major matrix is its own transpose read by columns, so y = a b is asked for as
// y^T = b^T a^T: the library's first operand is b, its second a, and nothing is copied.
#pragma once

#include <cstdint>

#include "ops/linear/matmul.h"

namespace tidemark {

struct GemmShape {
  struct Matrix {
    int64_t rows, columns;  // as it lies; columns are gapless, one behind the other
    bool transposed;        // before it enters the product
  };

  // a, b: shapes of matmul's operands.
  GemmShape(const Shape& a, const Shape& b, const MatmulAttrs& attrs)
      : first{b[1], b[0], attrs.transpose_b != 0},
        second{a[1], a[0], attrs.transpose_a != 0},
        m(b[attrs.transpose_b ? 0 : 1]),
        n(a[attrs.transpose_a ? 1 : 0]),
        k(a[attrs.transpose_a ? 0 : 1]) {}

  Matrix first, second;
  int64_t m, n, k;  // the product, (m, n) by columns, is matmul's y
};

}  // namespace tidemark
