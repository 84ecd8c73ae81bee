#include "ops/norm/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

constexpr double kRmsNormEps = 1e-5;

// Of rms_norm.h's formulas, in float64.
struct RmsNormReference {
  std::vector<double> y, rstd, gx, gweight;

  RmsNormReference(const Array& x, const Array& weight, const Array& gy)
      : gweight(weight.values.size()) {
    const size_t columns = weight.values.size();
    const double n = static_cast<double>(columns);
    for (size_t start = 0; start < x.values.size(); start += columns) {
      double squares = 0, product = 0;
      for (size_t c = 0; c < columns; ++c) squares += std::pow(double{x[start + c]}, 2);
      const double r = 1 / std::sqrt(squares / n + kRmsNormEps);
      rstd.push_back(r);
      const auto h = [&](size_t c) { return x[start + c] * r; };
      for (size_t c = 0; c < columns; ++c) {
        y.push_back(h(c) * weight[c]);
        gweight[c] += gy[start + c] * h(c);
        product += double{gy[start + c]} * weight[c] * h(c);
      }
      for (size_t c = 0; c < columns; ++c) {
        gx.push_back(r * (double{gy[start + c]} * weight[c] - h(c) * product / n));
      }
    }
  }
};

class RmsNorm : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape shape = GetParam();
  const Array x = Array::random(shape, 1, -2, 3);
  const Array weight = Array::random({shape.back()}, 2, 0.5, 2);
  const Array gy = Array::random(shape, 3);

  KernelRun forward(int threads = test_threads()) const {
    return run_kernel(kRmsNorm, {x, weight}, RmsNormAttrs{kRmsNormEps}, threads);
  }
  KernelRun backward(const KernelRun& y, bool frozen = false,
                     int threads = test_threads()) const {
    return run_kernel(kRmsNormGrad, {x, gy, weight, y[1]}, RmsNormGradAttrs{frozen}, threads);
  }
};

TEST_P(RmsNorm, AgreesWithTheDefinition) {
  const RmsNormReference reference(x, weight, gy);
  const KernelRun y = forward();
  EXPECT_EQ(y.metas[1].shape, Shape(std::span(shape.begin(), shape.rank() - 1)));
  expect_near(y[0], reference.y, 1e-6, "y");
  expect_near(y[1], reference.rstd, 1e-6, "rstd");
  const KernelRun grad = backward(y);
  // Rounding of gy * weight comes out rstd times as large.
  const double largest = *std::max_element(reference.rstd.begin(), reference.rstd.end());
  expect_near(grad[0], reference.gx, 2e-6 + 2e-7 * largest, "gx");
  expect_near(grad[1], reference.gweight, 2e-6, "gweight");
}

TEST_P(RmsNorm, RepeatsToTheBitWhateverTheThreads) {
  const KernelRun y = forward(1), grad = backward(y, false, 1), frozen = backward(y, true, 1);
  for (const int threads : {2, 3}) {
    const KernelRun y_again = forward(threads);
    const KernelRun grad_again = backward(y, false, threads);
    EXPECT_EQ(grad.workspace, grad_again.workspace);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(same_bits(y[i], y_again[i])) << i;
      EXPECT_TRUE(same_bits(grad[i], grad_again[i])) << i;
    }
    EXPECT_TRUE(same_bits(frozen[0], backward(y, true, threads)[0]));
  }
}

TEST_P(RmsNorm, AFrozenWeightCostsNothing) {
  const KernelRun y = forward(), grad = backward(y), frozen = backward(y, true);
  ASSERT_EQ(frozen.outputs.size(), 1U);
  EXPECT_EQ(frozen.workspace, Bytes(0));
  EXPECT_TRUE(same_bits(frozen[0], grad[0]));
}

INSTANTIATE_TEST_SUITE_P(Shapes, RmsNorm,
                         ::testing::Values(Shape{1, 576}, Shape{5, 1}, Shape{1, 1}, Shape{7},
                                           Shape{2, 3, 33}, Shape{3000, 20}, Shape{300, 64},
                                           Shape{3, 10000}, Shape{2, 5, 4, 50}));

class RmsNormTest : public SessionTest {};

TEST_F(RmsNormTest, Gradients) {
  const auto function = [](std::vector<Tensor> in) { return rms_norm(in[0], in[1], 1e-3); };
  check_gradients(function, {{3, 2, 10}, {10}});
  check_gradients(function, {{6}, {6}});
  check_gradients(
      [&](std::vector<Tensor> in) {
        in[0] = transpose(in[0], 0, 1);
        return transpose(function(in), 0, 1);
      },
      {{8, 5}, {8}});
}

// The outputs of the gradient's one call, where only some inputs need gradients.
TEST_F(RmsNormTest, MakesTheGradientsThatAreNeeded) {
  for (const bool x_needed : {false, true}) {
    for (const bool weight_needed : {false, true}) {
      SCOPED_TRACE(std::to_string(x_needed) + std::to_string(weight_needed));
      if (!x_needed && !weight_needed) continue;
      Tensor x = random_tensor({4, 6}, 1), weight = random_tensor({6}, 2);
      if (x_needed) require_grad(x);
      if (weight_needed) require_grad(weight);
      const Tensor y = rms_norm(x, weight);
      std::vector<size_t> outputs;
      std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
        const std::string_view name = call.name();
        if (name == "rms_norm_grad") outputs.push_back(call.outputs.size());
      });
      backward(y, random_tensor({4, 6}, 3));
      listener.reset();
      EXPECT_EQ(outputs, std::vector<size_t>{weight_needed ? 2U : 1U});
      EXPECT_TRUE(!x_needed || grad_of(x).defined());
      EXPECT_TRUE(!weight_needed || grad_of(weight).defined());
    }
  }
}

// rstd is one number for each row; no other activation is made.
TEST_F(RmsNormTest, KeepsOneNumberForEachRow) {
  const Tensor x = random_leaf({256, 512}, 1), weight = random_leaf({512}, 2);
  const Bytes before = session_.arena().live()[Category::kActivation];
  const Tensor y = rms_norm(x, weight);
  EXPECT_EQ(session_.arena().live()[Category::kActivation] - before,
            Bytes(256 * 512 * 4 + 256 * 4));
}

TEST_F(RmsNormTest, NanStaysInItsRow) {
  std::vector<float> values(3 * 40, 1), g(3 * 40, 1);
  values[40 + 7] = std::numeric_limits<float>::quiet_NaN();
  g[80 + 39] = std::numeric_limits<float>::quiet_NaN();
  Tensor x = from(values, {3, 40});
  require_grad(x);
  const Tensor y = rms_norm(x, from(std::vector<float>(40, 1), {40}));
  backward(y, from(g, {3, 40}));
  const std::vector<float> out = to_vector(y), gx = to_vector(grad_of(x));
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(std::isnan(out[i]), i / 40 == 1) << i;
    EXPECT_EQ(std::isnan(gx[i]), i / 40 >= 1) << i;
  }
}

TEST_F(RmsNormTest, RowsOfZerosStayZero) {
  const Tensor x = random_leaf({2, 5}, 1, 0, 0), weight = random_leaf({5}, 2);
  const Tensor y = rms_norm(x, weight);
  backward(y, random_tensor({2, 5}, 3));
  EXPECT_EQ(to_vector(y), std::vector<float>(10, 0));
  EXPECT_EQ(to_vector(grad_of(weight)), std::vector<float>(5, 0));
  for (const float value : to_vector(grad_of(x))) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(RmsNormTest, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 3}, 1), two = random_tensor({2}, 1);
  EXPECT_EQ(usage_error([&] { rms_norm(x, two); }),
            "[rms_norm] the weight must have the length of the last dimension; inputs (2, 3), "
            "(2)");
  const Tensor three = random_tensor({3}, 1);
  const auto expect_refusal = [](const auto& call) {
    const std::string error = usage_error(call);
    EXPECT_EQ(error.rfind("[rms_norm] ", 0), 0U) << error;
  };
  expect_refusal([&] { rms_norm(random_tensor({}, 1), two); });
  expect_refusal([&] { rms_norm(random_tensor({0, 3}, 1), three); });
  expect_refusal([&] { rms_norm(x, random_tensor({3, 1}, 1)); });
  expect_refusal([&] { rms_norm(x, three, -1); });
  expect_refusal([&] { rms_norm(from<int64_t>({1, 2, 3}, {3}), three); });
}

}  // namespace
}  // namespace tidemark::testing
