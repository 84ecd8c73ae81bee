#include "ops/elementwise/elementwise.h"
#include "ops/view/view.h"
#include "tests/support/broadcast.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using ArithmeticTest = SessionTest;

struct ArithmeticCase {
  const char* name;
  Tensor (*run)(const Tensor&, const Tensor&);
  double (*expected)(double, double);
};
const ArithmeticCase kArithmeticCases[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"sub", sub, [](double a, double b) { return a - b; }},
    {"mul", mul, [](double a, double b) { return a * b; }},
    {"div", div, [](double a, double b) { return a / b; }},
    {"add_scaled", [](const Tensor& a, const Tensor& b) { return add_scaled(a, b, -0.75); },
     [](double a, double b) { return a - 0.75 * b; }},
};

// Pairs that broadcast: equal, a row, a column, one value, both ways, inner ones, none, many.
const std::pair<Shape, Shape> kShapes[] = {
    {{5}, {5}},
    {{2, 3}, {3}},
    {{3}, {2, 3}},
    {{2, 3}, {2, 1}},
    {{4, 1}, {1, 5}},
    {{2, 3, 4}, {}},
    {{}, {}},
    {{}, {7}},
    {{2, 1, 4}, {3, 1}},
    {{1, 1}, {2, 3, 4}},
    {{2, 3, 4, 5}, {3, 1, 5}},
    {{0, 3}, {3}},
    {{1}, {0}},
    {{300, 257}, {257}},
    {{300, 257}, {300, 1}},
    {{70000}, {70000}},
    {{70001}, {1}},
};

TEST_F(ArithmeticTest, AgreesWithPlainLoopsUnderBroadcasting) {
  for (const ArithmeticCase& c : kArithmeticCases) {
    for (const auto& [as, bs] : kShapes) {
      SCOPED_TRACE(c.name + as.to_string() + bs.to_string());
      const std::vector<float> a = random_values(as.elements(), 1, 0.5, 2);
      const std::vector<float> b = random_values(bs.elements(), 2, 0.5, 2);
      const Shape shape = broadcast_shapes(as, bs);
      std::vector<double> expected;
      for (int64_t i = 0; i < shape.elements(); ++i) {
        expected.push_back(
            c.expected(broadcast_element(a, as, shape, i), broadcast_element(b, bs, shape, i)));
      }
      const Tensor y = c.run(from(a, as), from(b, bs));
      EXPECT_EQ(y.shape(), shape);
      EXPECT_TRUE(y.meta().is_contiguous());
      expect_close(y, expected);
    }
  }
}

TEST_F(ArithmeticTest, GradientsUnderBroadcasting) {
  for (const ArithmeticCase& c : kArithmeticCases) {
    for (const auto& [as, bs] : kShapes) {
      if (as.elements() > 1000 || bs.elements() > 1000) continue;
      SCOPED_TRACE(c.name + as.to_string() + bs.to_string());
      check_gradients([&](std::vector<Tensor> x) { return c.run(x[0], x[1]); }, {as, bs},
                      {.low = 0.5, .high = 2});
    }
  }
}

TEST_F(ArithmeticTest, StridedInputs) {
  const Tensor a = random_tensor({6, 8}, 1), b = random_tensor({8, 6}, 2);
  const std::vector<float> av = to_vector(a), bv = to_vector(b);
  std::vector<float> expected;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 3; ++j)
      expected.push_back(av[(i + 1) * 8 + j + 2] + bv[(j + 3) * 6 + i]);
  }
  const Tensor left = narrow(narrow(a, 0, 1, 4), 1, 2, 3);
  const Tensor right = transpose(narrow(narrow(b, 0, 3, 3), 1, 0, 4), 0, 1);
  EXPECT_EQ(to_vector(add(left, right)), expected);
  EXPECT_EQ(to_vector(add(expand(narrow(a, 0, 0, 1), {6, 8}), a)),
            to_vector(add(a, narrow(a, 0, 0, 1))));
}

TEST_F(ArithmeticTest, GradientsThroughStridedInputs) {
  check_gradients(
      [](std::vector<Tensor> x) { return mul(transpose(x[0], 0, 1), narrow(x[1], 0, 1, 3)); },
      {{4, 3}, {5, 4}});
}

TEST_F(ArithmeticTest, AnInputUsedTwiceGetsBothGradients) {
  check_gradients([](std::vector<Tensor> x) { return x[0] * x[0] + x[0]; }, {{3, 4}});
  check_gradients([](std::vector<Tensor> x) { return x[0] / x[0] - x[0]; }, {{3, 4}},
                  {.low = 0.5, .high = 2});
}

TEST_F(ArithmeticTest, OnlyOneSideNeedsAGradient) {
  const Tensor constant = random_tensor({3}, 9, 0.5, 2);
  for (const ArithmeticCase& c : kArithmeticCases) {
    SCOPED_TRACE(c.name);
    check_gradients([&](std::vector<Tensor> x) { return c.run(x[0], constant); }, {{2, 3}});
    check_gradients([&](std::vector<Tensor> x) { return c.run(constant, x[0]); }, {{2, 3}},
                    {.low = 0.5, .high = 2});
  }
}

TEST_F(ArithmeticTest, ErrorsNameOperatorAndShapes) {
  const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({4}, 2);
  EXPECT_EQ(usage_error([&] { mul(a, b); }), "[mul] shapes (2, 3) and (4) do not broadcast");
  const Tensor integers = from<int64_t>({1, 2, 3}, {3});
  EXPECT_EQ(usage_error([&] { add(a, integers); }),
            "[add] input 1 of shape (3) is int64, not float32");
}

TEST_F(ArithmeticTest, CostCountsABroadcastInputOnce) {
  const TensorMeta inputs[] = {TensorMeta::contiguous(DType::kFloat32, {8, 16}),
                               TensorMeta{DType::kFloat32, {8, 16}, {0, 1}, 0}};
  const Attrs attrs;
  const std::vector<TensorMeta> outputs = kAdd.infer({inputs, {}, attrs});
  const OpCost cost = kAdd.cost({inputs, outputs, attrs});
  EXPECT_EQ(cost.flops, 128);
  EXPECT_EQ(cost.bytes_moved, Bytes((128 + 16 + 128) * 4));
  EXPECT_FALSE(cost.matrix);
}

}  // namespace
}  // namespace tidemark::testing
