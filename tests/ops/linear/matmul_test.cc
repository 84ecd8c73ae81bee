#include "ops/linear/matmul.h"

#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

struct Case {
  int64_t m, k, n;
  bool transpose_a, transpose_b;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                {1, 7, 5},
                                {9, 1, 4},
                                {8, 64, 10},
                                {33, 65, 17},
                                {64, 200, 100},
                                {130, 20, 2100},
                                {5, 1000, 3},
                                {130, 48, 256}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) all.push_back({m, k, n, ta, tb});
    }
  }
  return all;
}

class Matmul : public ::testing::TestWithParam<Case> {
 protected:
  const Case c = GetParam();
  const MatmulAttrs attrs{c.transpose_a, c.transpose_b};
  Array a = Array::random(c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, 1);
  Array b = Array::random(c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n}, 2);
  Array bias = Array::random({c.n}, 3);
};

TEST_P(Matmul, AgreesWithTheDefinition) {
  std::vector<double> y(static_cast<size_t>(c.m * c.n));
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      double& sum = y[static_cast<size_t>(i * c.n + j)];
      for (int64_t l = 0; l < c.k; ++l) {
        const auto left = static_cast<size_t>(c.transpose_a ? l * c.m + i : i * c.k + l);
        const auto right = static_cast<size_t>(c.transpose_b ? j * c.k + l : l * c.n + j);
        sum += double{a[left]} * b[right];
      }
    }
  }
  const auto run = run_kernel(kMatmul, {a, b}, attrs);
  ASSERT_EQ(run[0].shape, Shape({c.m, c.n}));
  expect_near(run[0], y, 1e-5, "y");
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.values.size()];
  expect_near(run_kernel(kMatmul, {a, b, bias}, attrs)[0], y, 1e-5, "y with bias");
}

TEST_P(Matmul, RepeatsToTheBit) {
  const auto run = run_kernel(kMatmul, {a, b, bias}, attrs);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(run_kernel(kMatmul, {a, b, bias}, attrs)[0], run[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Matmul, ::testing::ValuesIn(cases()));

TEST(BatchedMatmul, IsAProductForEachOfTheBatch) {
  const auto at = [](const Array& x, int64_t i) {
    const int64_t rows = x.shape[2], columns = x.shape[3];
    const auto from = x.values.begin() + i * rows * columns;
    return Array{{rows, columns}, {from, from + rows * columns}};
  };
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const MatmulAttrs attrs{ta, tb};
      const Array a = Array::random(ta ? Shape{2, 3, 7, 5} : Shape{2, 3, 5, 7}, 1);
      const Array b = Array::random(tb ? Shape{2, 3, 9, 7} : Shape{2, 3, 7, 9}, 2);
      const Array bias = Array::random({9}, 3);
      const auto run = run_kernel(kMatmul, {a, b, bias}, attrs);
      ASSERT_EQ(run[0].shape, Shape({2, 3, 5, 9}));
      for (int64_t i = 0; i < 6; ++i) {
        const auto one = run_kernel(kMatmul, {at(a, i), at(b, i), bias}, attrs);
        expect_near(at(run[0], i), {one[0].values.begin(), one[0].values.end()}, 1e-6, "y");
      }
    }
  }
}

TEST(MatmulErrors, NameTheOperatorAndTheShapes) {
  const auto error_of = [](const std::vector<Shape>& shapes,
                           const Attrs& attrs) -> std::string {
    std::vector<TensorMeta> in;
    for (const Shape& s : shapes) in.push_back(TensorMeta::contiguous(DType::kFloat32, s));
    try {
      kMatmul.infer({in, {}, attrs});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of({{2, 3}, {3, 5}}, MatmulAttrs{}), "");
  EXPECT_EQ(
      error_of({{2, 3}, {4, 5}}, MatmulAttrs{}),
      "[matmul] the first matrix has 3 columns, but the second has 4 rows; inputs (2, 3), "
      "(4, 5)");
  EXPECT_EQ(error_of({{2, 3}, {3, 5}}, MatmulAttrs{0, 1}),
            "[matmul] the first matrix has 3 columns, but the second, transposed, has 5 rows; "
            "inputs (2, 3), (3, 5)");
  for (const std::string& error :
       {error_of({{2, 3}, {3, 5}}, MatmulAttrs{0, 1}),
        error_of({{2, 3}, {4, 5}}, MatmulAttrs{}),
        error_of({{2, 3}, {3, 5}, {2}}, MatmulAttrs{}), error_of({{2, 3}, {3}}, MatmulAttrs{}),
        error_of({{2, 3}}, MatmulAttrs{}), error_of({{4, 2, 3}, {2, 3}}, MatmulAttrs{}),
        error_of({{4, 2, 3}, {5, 2, 3}}, MatmulAttrs{0, 1})}) {
    EXPECT_EQ(error.rfind("[matmul] ", 0), 0u) << error;
    EXPECT_NE(error.find("2, 3)"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace tidemark::testing
