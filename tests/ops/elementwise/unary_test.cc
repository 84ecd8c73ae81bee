#include "ops/elementwise/unary.h"

#include <cmath>
#include <limits>

#include "ops/elementwise/compare.h"
#include "ops/elementwise/relu.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using UnaryTest = SessionTest;

struct UnaryCase {
  const char* name;
  Tensor (*run)(const Tensor&);
  double (*expected)(double);
  float low, high;
};
const UnaryCase kUnaryCases[] = {
    {"scale", [](const Tensor& x) { return scale(x, -2.5); }, [](double x) { return -2.5 * x; },
     -2, 2},
    {"neg", neg, [](double x) { return -x; }, -2, 2},
    {"abs", abs, [](double x) { return std::abs(x); }, -2, 2},
    {"relu", relu, [](double x) { return x > 0 ? x : 0; }, -2, 2},
    {"exp", exp, [](double x) { return std::exp(x); }, -2, 2},
    {"log", log, [](double x) { return std::log(x); }, 0.5, 2},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.5, 2},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, -2, 2},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -2, 2},
    {"relu6", relu6, [](double x) { return x < 0   ? 0
                                           : x > 6 ? 6
                                                   : x; }, -2, 5.9F},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, -6, 6},
};

TEST_F(UnaryTest, AgreesWithPlainLoops) {
  for (const UnaryCase& c : kUnaryCases) {
    for (const Shape& shape : {Shape{}, Shape{0, 4}, Shape{3, 5}, Shape{70003}}) {
      SCOPED_TRACE(c.name + shape.to_string());
      const std::vector<float> x = random_values(shape.elements(), 3, c.low, c.high);
      std::vector<double> expected;
      for (float value : x) expected.push_back(c.expected(value));
      expect_close(c.run(from(x, shape)), expected);
    }
  }
}

TEST_F(UnaryTest, StridedInputs) {
  const std::vector<float> x = random_values(6 * 5, 3, 0.5, 2);
  for (const UnaryCase& c : kUnaryCases) {
    SCOPED_TRACE(c.name);
    std::vector<double> expected;
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 1; j < 4; ++j) expected.push_back(c.expected(x[j * 5 + i]));
    }
    const Tensor y = c.run(transpose(narrow(from(x, {6, 5}), 0, 1, 3), 0, 1));
    EXPECT_EQ(y.shape(), (Shape{5, 3}));
    EXPECT_TRUE(y.meta().is_contiguous());
    expect_close(y, expected);
  }
}

TEST_F(UnaryTest, Gradients) {
  for (const UnaryCase& c : kUnaryCases) {
    for (const Shape& shape : {Shape{}, Shape{0, 4}, Shape{3, 5}}) {
      SCOPED_TRACE(c.name + shape.to_string());
      check_gradients([&](std::vector<Tensor> x) { return c.run(x[0]); }, {shape},
                      {.low = c.low, .high = c.high, .gap = 0.1F});
    }
  }
}

TEST_F(UnaryTest, GradientsOfStridedInputsAndOutputs) {
  for (const UnaryCase& c : kUnaryCases) {
    SCOPED_TRACE(c.name);
    check_gradients(
        [&](std::vector<Tensor> x) { return transpose(c.run(transpose(x[0], 0, 1)), 0, 1); },
        {{3, 4}}, {.low = c.low, .high = c.high, .gap = 0.1F});
  }
}

TEST_F(UnaryTest, Relu6StopsAtSixAndSoDoesItsGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor x = from<float>({-1, 0, 3, 6, 7, 1e30F, nan}, {7});
  require_grad(x);
  const Tensor y = relu6(x);
  const std::vector<float> values = to_vector(y);
  EXPECT_TRUE(std::isnan(values[6]));
  EXPECT_EQ(std::vector(values.begin(), values.begin() + 6),
            (std::vector<float>{0, 0, 3, 6, 6, 6}));
  backward(y, from<float>({1, 1, 1, 1, 1, 1, 1}, {7}));
  EXPECT_EQ(to_vector(grad_of(x)), (std::vector<float>{0, 0, 1, 0, 0, 0, 0}));
}

TEST_F(UnaryTest, SiluOfLargeValues) {
  Tensor x = from<float>({-3e4F, -100, 0, 100, 3e4F}, {5});
  require_grad(x);
  const Tensor y = silu(x);
  expect_close(y, std::vector<double>{0, 0, 0, 100, 3e4}, 1e-7);
  backward(y, from<float>({1, 1, 1, 1, 1}, {5}));
  expect_close(grad_of(x), std::vector<double>{0, 0, 0.5, 1, 1}, 1e-7);
}

TEST_F(UnaryTest, OtherTypesAreRefused) {
  EXPECT_EQ(usage_error([] { relu(from<int64_t>({1}, {1})); }),
            "[relu] input 0 of shape (1) is int64, not float32 or bfloat16");
  EXPECT_EQ(usage_error([] { exp(cast(from<float>({1}, {1}), DType::kBFloat16)); }),
            "[exp] input 0 of shape (1) is bfloat16, not float32");
}

}  // namespace
}  // namespace tidemark::testing
