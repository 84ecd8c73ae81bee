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
    return data[static_cast<size_t>(column * matrix.leading + row)];
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
      const auto y = column_major_product(
          GemmShape(TensorMeta::contiguous(DType::kFloat32, a.shape),
                    TensorMeta::contiguous(DType::kFloat32, b.shape),
                    TensorMeta::contiguous(DType::kFloat32, {kM, kN}), attrs),
          b, a);
      ASSERT_EQ(y.size(), expected.size());
      for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
    }
  }
}

TEST(GemmShapeTest, ViewsLieAsMatricesIfOneDimensionIsGapless) {
  const auto layout = [](const Shape& shape, const Shape& strides) {
    return MatrixLayout({DType::kFloat32, shape, strides, 0});
  };
  EXPECT_TRUE(layout({3, 5}, {8, 1}).by_rows);
  EXPECT_EQ(layout({3, 5}, {8, 1}).leading, 8);
  EXPECT_TRUE(layout({3, 5}, {1, 4}).fits);
  EXPECT_FALSE(layout({3, 5}, {1, 4}).by_rows);
  EXPECT_EQ(layout({3, 5}, {1, 4}).leading, 4);
  EXPECT_TRUE(layout({1, 5}, {2, 1}).fits);  // one row: its stride says nothing
  EXPECT_EQ(layout({1, 5}, {2, 1}).leading, 5);
  EXPECT_TRUE(layout({1, 1}, {9, 7}).fits);
  EXPECT_FALSE(layout({3, 5}, {10, 2}).fits);
  EXPECT_FALSE(layout({3, 5}, {0, 1}).fits);  // rows that overlap
  EXPECT_FALSE(layout({3, 5}, {1, 2}).fits);
}

// (B, T, H, D) as (B, H, T, D): heads are a batch of one stride, batch entries calls.
TEST(GemmShapeTest, HeadsAreABatch) {
  const TensorMeta heads{DType::kFloat32, {2, 3, 7, 8}, {7 * 72, 8, 72, 1}, 24};
  const TensorMeta scores = TensorMeta::contiguous(DType::kFloat32, {2, 3, 7, 7});
  const GemmShape shape(heads, heads, scores, MatmulAttrs{0, 1});
  EXPECT_EQ(shape.first.leading, 72);
  EXPECT_EQ(shape.batches.rank, 2u);
  EXPECT_EQ(shape.batches.extents[1], 3);
  EXPECT_EQ(shape.batches.strides[0][1], 49);
  EXPECT_EQ(shape.batches.strides[1][1], 8);
  EXPECT_EQ(shape.batches.offset(1, 3), 7 * 72);
  EXPECT_FALSE(shape.aligned);  // a batch entry has 147 scores
}

}  // namespace
}  // namespace tidemark
