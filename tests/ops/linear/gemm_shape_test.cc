#include "ops/linear/gemm_shape.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/run_kernel.h"

namespace tidemark {
namespace {

using testing::Array;

// What a library of column-major matrices does with the description.
std::vector<float> column_major_product(const GemmShape& shape, const Array& first,
                                        const Array& second) {
  const auto element = [](const GemmShape::Matrix& matrix, const Array& data, int64_t row,
                          int64_t column) {
    if (matrix.transposed) std::swap(row, column);
    EXPECT_LT(row, matrix.rows);
    EXPECT_LT(column, matrix.columns);
    return data[static_cast<size_t>(column * matrix.rows + row)];
  };
  std::vector<float> y(static_cast<size_t>(shape.m * shape.n));
  for (int64_t column = 0; column < shape.n; ++column) {
    for (int64_t row = 0; row < shape.m; ++row) {
      float sum = 0;
      for (int64_t i = 0; i < shape.k; ++i) {
        sum += element(shape.first, first, row, i) * element(shape.second, second, i, column);
      }
      y[static_cast<size_t>(column * shape.m + row)] = sum;
    }
  }
  return y;
}

TEST(GemmShapeTest, AColumnMajorProductGivesTheRowMajorOne) {
  constexpr int64_t kM = 3, kK = 4, kN = 5;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      SCOPED_TRACE(::testing::Message() << ta << tb);
      const Array a = Array::random(ta ? Shape{kK, kM} : Shape{kM, kK}, 1);
      const Array b = Array::random(tb ? Shape{kN, kK} : Shape{kK, kN}, 2);
      const MatmulAttrs attrs{ta, tb};
      const auto expected =
          testing::run_kernel_with({.device = "cpu"}, kMatmul, {a, b}, attrs)[0].values;
      const auto y = column_major_product(GemmShape(a.shape, b.shape, attrs), b, a);
      ASSERT_EQ(y.size(), expected.size());
      for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
    }
  }
}

}  // namespace
}  // namespace tidemark
