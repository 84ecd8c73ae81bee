#include "ops/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "ops/elementwise/elementwise.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using ReduceTest = SessionTest;

// In float64, over the dimensions of `mask`; `values` of `shape` in row-major order.
std::vector<double> plain_sum(const std::vector<float>& values, const Shape& shape,
                              unsigned mask) {
  Shape kept = shape;
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (mask >> d & 1) kept[d] = 1;
  }
  const Shape steps = contiguous_strides(kept);
  std::vector<double> sums(static_cast<size_t>(kept.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), at = 0;
    for (size_t d = shape.rank(); d-- > 0;) {
      if (kept[d] != 1) at += rest % shape[d] * steps[d];
      rest /= shape[d];
    }
    sums[static_cast<size_t>(at)] += double{values[i]};
  }
  return sums;
}

Tensor sum_over(const Tensor& x, unsigned mask, bool keep) {
  switch (mask) {
    case 0: return sum(x, {}, keep);
    case 1: return sum(x, {0}, keep);
    case 2: return sum(x, {1}, keep);
    case 3: return sum(x, {0, 1}, keep);
    case 4: return sum(x, {-1}, keep);
    case 5: return sum(x, {0, 2}, keep);
    case 6: return sum(x, {2, 1}, keep);
    default: return sum(x, {0, 1, 2}, keep);
  }
}

TEST_F(ReduceTest, SumsOverAnyDimensionsOfAnyStrides) {
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{1, 5, 1}, Shape{3, 0, 2}, Shape{5, 700, 17},
                             Shape{1100, 3, 2}, Shape{2, 3, 9000}, Shape{2, 4, 1500}}) {
    const std::vector<float> values = random_values(shape.elements(), 5);
    const Tensor x = from(values, shape);
    // The same values kept in another order: (d2, d0, d1).
    const Tensor moved = permute(contiguous(permute(x, {2, 0, 1})), {1, 2, 0});
    for (unsigned mask = 0; mask < 8; ++mask) {
      SCOPED_TRACE(shape.to_string() + " mask " + std::to_string(mask));
      const std::vector<double> expected = plain_sum(values, shape, mask);
      expect_close(sum_over(x, mask, false), expected, 2e-5);
      expect_close(sum_over(moved, mask, true), expected, 2e-5);
    }
  }
}

TEST_F(ReduceTest, Shapes) {
  const Tensor x = random_tensor({2, 3, 4}, 1);
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(sum(x, {1}).shape(), (Shape{2, 4}));
  EXPECT_EQ(sum(x, {1, -1}, true).shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(sum(random_tensor({}, 1)).shape(), Shape{});
  EXPECT_EQ(usage_error([&] { sum(x, {1, -2}); }), "[sum] dimension -2 appears twice");
  EXPECT_EQ(usage_error([&] { mean(x, {3}); }), "[mean] no dimension 3 in shape (2, 3, 4)");
}

TEST_F(ReduceTest, LongSumsStayAccurateAndDoNotDependOnThreads) {
  const std::vector<float> values = random_values(3000007, 6, 0, 1);
  const Tensor x = from(values, {3000007});
  const std::vector<double> expected = plain_sum(values, {3000007}, 1);
  expect_close(sum(x), expected, 1e-7);
  const std::vector<float> two_threads = to_vector(sum(x));
  const Tensor columns = from(values, {3000007});
  const std::vector<float> two =
      to_vector(sum(reshape(narrow(columns, 0, 0, 3000000), {30000, 100}), {0}));
  SessionOptions single = options();
  single.threads = 1;
  Session other(single);
  const Tensor again = from(values, {3000007});
  EXPECT_TRUE(same_bits(to_vector(sum(again)), two_threads));
  EXPECT_TRUE(
      same_bits(to_vector(sum(reshape(narrow(again, 0, 0, 3000000), {30000, 100}), {0})), two));
}

TEST_F(ReduceTest, Mean) {
  const Tensor x = from<float>({1, 2, 3, 4, 5, 9}, {2, 3});
  expect_close(mean(x), std::vector<double>{4});
  expect_close(mean(x, {1}), std::vector<double>{2, 6});
  EXPECT_TRUE(std::isnan(to_vector(mean(from<float>({}, {0})))[0]));
  EXPECT_EQ(to_vector(sum(from<float>({}, {0, 3}), {0})), std::vector<float>(3, 0));
}

TEST_F(ReduceTest, SumTo) {
  const Tensor x = random_tensor({2, 3, 4}, 1);
  const std::vector<float> values = to_vector(x);
  EXPECT_EQ(sum_to(x, {2, 3, 4}).storage().get(), x.storage().get());
  for (const auto& [shape, mask] : std::vector<std::pair<Shape, unsigned>>{{{4}, 3},
                                                                           {{3, 4}, 1},
                                                                           {{1, 4}, 3},
                                                                           {{3, 1}, 5},
                                                                           {{2, 1, 1}, 6},
                                                                           {{}, 7},
                                                                           {{1}, 7}}) {
    SCOPED_TRACE(shape.to_string());
    const Tensor y = sum_to(x, shape);
    EXPECT_EQ(y.shape(), shape);
    expect_close(y, plain_sum(values, {2, 3, 4}, mask));
  }
  EXPECT_THROW(sum_to(x, {5}), UsageError);
}

TEST_F(ReduceTest, Gradients) {
  const auto check = [](Tensor (*reduce)(const Tensor&)) {
    check_gradients([&](std::vector<Tensor> x) { return reduce(mul(x[0], x[0])); },
                    {{2, 3, 4}});
    check_gradients([&](std::vector<Tensor> x) { return reduce(x[0]); }, {{2, 3, 4}});
  };
  check([](const Tensor& x) { return sum(x); });
  check([](const Tensor& x) { return mean(x); });
  check([](const Tensor& x) { return sum(x, {1}); });
  check([](const Tensor& x) { return sum(x, {0, 2}, true); });
  check([](const Tensor& x) { return mean(x, {0, 1}); });
  check([](const Tensor& x) { return mean(transpose(x, 0, 2), {0}, true); });
  check([](const Tensor& x) { return sum_to(x, {3, 1}); });
  check([](const Tensor& x) { return sum_to(x, {4}); });
}

TEST_F(ReduceTest, MaxAndArgmax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = from<float>({1, 5, 5, -3, -1, -2, 4, nan, 9}, {3, 3});
  const auto [values, indices] = max(x);
  EXPECT_EQ(to_vector<int64_t>(indices), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(to_vector<int64_t>(argmax(x)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(to_vector(values)[0], 5);
  EXPECT_EQ(to_vector(values)[1], -1);
  EXPECT_TRUE(std::isnan(to_vector(values)[2]));
  EXPECT_EQ(to_vector<int64_t>(argmax(transpose(narrow(x, 0, 0, 2), 0, 1))),
            (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(argmax(from<float>({2, 3}, {2})).shape(), Shape{});
  EXPECT_THROW(argmax(from<float>({}, {2, 0})), UsageError);
  EXPECT_THROW(max(from<float>({1}, {})), UsageError);
}

TEST_F(ReduceTest, MaxGradients) {
  // Distinct values, further apart than the step of the differences.
  Tensor x = from<float>({3, 1, 2, 6, 9, -4}, {2, 3});
  require_grad(x);
  backward(max(x).first, from<float>({10, 20}, {2}));
  EXPECT_EQ(to_vector(grad_of(x)), (std::vector<float>{10, 0, 0, 0, 20, 0}));
}

TEST_F(ReduceTest, AccuracyCount) {
  const Tensor logits = from<float>({1, 2, 0, 7, 1, 1, 0, 0, 3}, {3, 3});
  EXPECT_EQ(to_vector<int64_t>(accuracy_count(logits, from<int64_t>({1, 0, 0}, {3}))),
            std::vector<int64_t>{2});
  EXPECT_EQ(to_vector<int64_t>(accuracy_count(logits, from<int64_t>({-1, 9, 2}, {3}))),
            std::vector<int64_t>{1});
  EXPECT_EQ(to_vector<int64_t>(accuracy_count(from<float>({}, {0, 3}), from<int64_t>({}, {0}))),
            std::vector<int64_t>{0});
  const int64_t rows = 5000, classes = 11;
  const std::vector<float> values = random_values(rows * classes, 8);
  std::vector<int64_t> labels;
  int64_t expected = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c) {
      if (values[row * classes + c] > values[row * classes + best]) best = c;
    }
    labels.push_back(row % classes);
    expected += best == labels.back();
  }
  EXPECT_EQ(
      to_vector<int64_t>(accuracy_count(from(values, {rows, classes}), from(labels, {rows}))),
      std::vector<int64_t>{expected});
  EXPECT_EQ(usage_error([&] { accuracy_count(logits, from<int64_t>({1}, {1})); }),
            "[accuracy_count] logits must be (N, C) and labels (N), not (3, 3) and (1)");
}

}  // namespace
}  // namespace tidemark::testing
