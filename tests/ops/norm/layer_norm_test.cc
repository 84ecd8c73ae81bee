#include "ops/norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "ops/view/view.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

constexpr double kLayerNormEps = 1e-5;

// Of layer_norm.h's formulas, in float64.
struct LayerNormReference {
  std::vector<double> y, mean, rstd, gx, ggamma, gbeta;

  LayerNormReference(const Array& x, const Array& gamma, const Array& beta, const Array& gy)
      : ggamma(gamma.values.size()), gbeta(gamma.values.size()) {
    const size_t columns = gamma.values.size();
    const double n = static_cast<double>(columns);
    for (size_t start = 0; start < x.values.size(); start += columns) {
      double sum = 0, squares = 0, g_sum = 0, product = 0;
      for (size_t c = 0; c < columns; ++c) sum += x[start + c];
      const double m = sum / n;
      for (size_t c = 0; c < columns; ++c) squares += std::pow(x[start + c] - m, 2);
      const double r = 1 / std::sqrt(squares / n + kLayerNormEps);
      mean.push_back(m);
      rstd.push_back(r);
      const auto h = [&](size_t c) { return (x[start + c] - m) * r; };
      for (size_t c = 0; c < columns; ++c) {
        y.push_back(h(c) * gamma[c] + beta[c]);
        ggamma[c] += gy[start + c] * h(c);
        gbeta[c] += gy[start + c];
        g_sum += double{gy[start + c]} * gamma[c];
        product += double{gy[start + c]} * gamma[c] * h(c);
      }
      for (size_t c = 0; c < columns; ++c) {
        gx.push_back(r * (double{gy[start + c]} * gamma[c] - g_sum / n - h(c) * product / n));
      }
    }
  }
};

class LayerNorm : public ::testing::TestWithParam<Shape> {
 protected:
  const Shape shape = GetParam();
  const Array x = Array::random(shape, 1, -2, 3);
  const Array gamma = Array::random({shape.back()}, 2, 0.5, 2);
  const Array beta = Array::random({shape.back()}, 3);
  const Array gy = Array::random(shape, 4);

  KernelRun forward(int threads = test_threads()) const {
    return run_kernel(kLayerNorm, {x, gamma, beta}, LayerNormAttrs{kLayerNormEps}, threads);
  }
  KernelRun backward(const KernelRun& y, int threads = test_threads()) const {
    return run_kernel(kLayerNormGrad, {x, gy, gamma, y[1], y[2]}, LayerNormAttrs{kLayerNormEps},
                      threads);
  }
};

TEST_P(LayerNorm, AgreesWithTheDefinition) {
  const LayerNormReference reference(x, gamma, beta, gy);
  const KernelRun y = forward();
  EXPECT_EQ(y.metas[1].shape, Shape(std::span(shape.begin(), shape.rank() - 1)));
  expect_near(y[0], reference.y, 2e-6, "y");
  expect_near(y[1], reference.mean, 1e-6, "mean");
  expect_near(y[2], reference.rstd, 1e-6, "rstd");
  const KernelRun grad = backward(y);
  // Rounding of gy * gamma comes out rstd times as large.
  const double largest = *std::max_element(reference.rstd.begin(), reference.rstd.end());
  expect_near(grad[0], reference.gx, 5e-6 + 2e-7 * largest, "gx");
  expect_near(grad[1], reference.ggamma, 2e-6, "ggamma");
  expect_near(grad[2], reference.gbeta, 2e-6, "gbeta");
}

TEST_P(LayerNorm, RepeatsToTheBitWhateverTheThreads) {
  const KernelRun y = forward(), alone = forward(1);
  const KernelRun grad = backward(y), grad_alone = backward(y, 1);
  EXPECT_EQ(grad.workspace, grad_alone.workspace);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(y[i], alone[i])) << i;
    EXPECT_TRUE(same_bits(grad[i], grad_alone[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNorm,
                         ::testing::Values(Shape{1, 768}, Shape{5, 1}, Shape{1, 1}, Shape{7},
                                           Shape{2, 3, 33}, Shape{3000, 20}, Shape{300, 64},
                                           Shape{3, 10000}, Shape{2, 5, 4, 50}));

class LayerNormTest : public SessionTest {};

// Deviations a thousandth of the mean.
TEST_F(LayerNormTest, AMeanFarFromZeroDoesNoHarm) {
  std::vector<float> values = random_values(4 * 96, 1);
  for (float& value : values) value = value * 0.125F + 100;
  const Tensor x = from(values, {4, 96});
  const std::vector<float> y = to_vector(layer_norm(x, from(std::vector<float>(96, 1), {96}),
                                                    from(std::vector<float>(96, 0), {96}), 0));
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0, squares = 0;
    for (size_t c = 0; c < 96; ++c) {
      sum += y[row * 96 + c];
      squares += double{y[row * 96 + c]} * y[row * 96 + c];
    }
    EXPECT_NEAR(sum / 96, 0, 2e-4);
    EXPECT_NEAR(squares / 96, 1, 1e-5);
  }
}

TEST_F(LayerNormTest, Gradients) {
  const auto function = [](std::vector<Tensor> in) {
    return layer_norm(in[0], in[1], in[2], 1e-3);
  };
  check_gradients(function, {{3, 2, 10}, {10}, {10}});
  check_gradients(function, {{6}, {6}, {6}});
  check_gradients(
      [&](std::vector<Tensor> in) {
        in[0] = transpose(in[0], 0, 1);
        return transpose(function(in), 0, 1);
      },
      {{8, 5}, {8}, {8}});
}

// mean and rstd are one number for each row; no other activation is made.
TEST_F(LayerNormTest, KeepsTwoNumbersForEachRow) {
  const Tensor x = random_leaf({256, 512}, 1);
  const Tensor gamma = random_leaf({512}, 2), beta = random_leaf({512}, 3);
  const Bytes before = session_.arena().live()[Category::kActivation];
  const Tensor y = layer_norm(x, gamma, beta);
  EXPECT_EQ(session_.arena().live()[Category::kActivation] - before,
            Bytes(256 * 512 * 4 + 2 * 256 * 4));
}

TEST_F(LayerNormTest, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 3}, 1), two = random_tensor({2}, 1);
  EXPECT_EQ(
      usage_error([&] { layer_norm(x, two, two); }),
      "[layer_norm] gamma and beta must have the length of the last dimension; inputs (2, "
      "3), (2), (2)");
  EXPECT_NE(usage_error([&] { layer_norm(random_tensor({}, 1), two, two); }), "");
  const Tensor three = random_tensor({3}, 1);
  EXPECT_NE(usage_error([&] { layer_norm(x, three, three, -1); }), "");
  EXPECT_NE(usage_error([&] { layer_norm(from<int64_t>({1, 2, 3}, {3}), three, three); }), "");
}

}  // namespace
}  // namespace tidemark::testing
