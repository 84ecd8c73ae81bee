// A batched product of row-major matrices, described for libraries that use column-major ones.
//
// A row-major matrix read by columns is its own transpose, so y = a b is requested as y^T = b^T
// a^T: the library's first operand is b, its second a, and nothing is copied. A strided view is
// accepted if one of its last two dimensions is gapless; the strides of the others are free.
#pragma once

#include <cstdint>

#include "ops/kernels/strided.h"
#include "ops/linear/matmul.h"

namespace tidemark {

// The layout of a view's last two dimensions.
struct MatrixLayout {
  bool fits = false;      // one of them is gapless, and rows (or columns) do not overlap
  bool by_rows = true;    // else by columns
  int64_t leading = 1;    // stride from one row (or column) to the next
  int64_t rows, columns;  // of the view

  explicit MatrixLayout(const TensorMeta& x) {
    const size_t last = x.shape.rank() - 1;
    rows = x.shape[last - 1];
    columns = x.shape[last];
    const int64_t down = x.strides[last - 1], across = x.strides[last];
    if ((columns == 1 || across == 1) && (rows == 1 || down >= columns)) {
      fits = true;
      leading = rows == 1 ? columns : down;
    } else if ((rows == 1 || down == 1) && (columns == 1 || across >= rows)) {
      fits = true;
      by_rows = false;
      leading = columns == 1 ? rows : across;
    }
  }
};

struct GemmShape {
  struct Matrix {
    int64_t rows, columns;  // as stored; columns are gapless, `leading` apart
    bool transposed;        // transposed before entering the product
    int64_t leading;
  };

  // a, b, y: matmul's operands and result. y must be stored by rows.
  GemmShape(const TensorMeta& a, const TensorMeta& b, const TensorMeta& y,
            const MatmulAttrs& attrs)
      : first(matrix(b, attrs.transpose_b != 0)),
        second(matrix(a, attrs.transpose_a != 0)),
        result(matrix(y, false)),
        m(result.rows),
        n(result.columns),
        k(a.shape[a.shape.rank() - (attrs.transpose_a ? 2 : 1)]),
        batches(loop(a, b, y)),
        inputs(a.dtype),
        output(y.dtype) {
    size_t operand = 0;
    for (const TensorMeta* meta : {&y, &a, &b}) {
      const int64_t vector = 16 / size_of(meta->dtype).count();
      aligned = aligned && meta->offset % vector == 0;
      for (size_t d = 0; d + 1 < batches.rank; ++d) {
        aligned = aligned && batches.strides[operand][d] % vector == 0;
      }
      ++operand;
    }
  }

  Matrix first, second, result;
  int64_t m, n, k;      // the product, (m, n) by columns, is matmul's y
  StridedLoop batches;  // over the leading dimensions; operands y, a, b
  // Libraries take the last batch dimension as one strided batch; each of the others is a loop
  // of calls.
  DType inputs, output;  // float32 or bfloat16
  bool aligned = true;   // every pointer passed to a call is aligned to 16 bytes

 private:
  static Matrix matrix(const TensorMeta& x, bool transposed) {
    const MatrixLayout layout(x);
    if (layout.by_rows) return {layout.columns, layout.rows, transposed, layout.leading};
    return {layout.rows, layout.columns, !transposed, layout.leading};
  }
  static StridedLoop loop(const TensorMeta& a, const TensorMeta& b, const TensorMeta& y) {
    const auto leading = [](const TensorMeta& x) {
      const size_t rank = x.shape.rank() - 2;
      return TensorMeta{x.dtype, Shape(std::span(x.shape.begin(), rank)),
                        Shape(std::span(x.strides.begin(), rank)), 0};
    };
    const TensorMeta to = leading(y), left = leading(a), right = leading(b);
    return make_loop(to.shape, {&to, &left, &right});
  }
};

}  // namespace tidemark
