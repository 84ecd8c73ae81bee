#include "ops/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/elementwise/relu.h"
#include "ops/norm/running_stats.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "tests/support/run_kernel.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

constexpr double kBatchNormEps = 1e-3;

struct Case {
  Shape shape;
  Activation activation;
  bool residual;
  int threads;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Shape& shape :
       {Shape{2, 1}, Shape{5, 3}, Shape{2, 3, 5, 7}, Shape{1, 9, 11, 16}, Shape{4, 13, 17, 64},
        Shape{3, 5, 5, 130}, Shape{2, 30, 31, 70}, Shape{2, 3, 4, 5, 6}}) {
    for (int threads : {1, 2, 3}) {
      for (const Activation f :
           {Activation::kNone, Activation::kReLU, Activation::kReLU6, Activation::kSiLU}) {
        all.push_back({shape, f, false, threads});
      }
      all.push_back({shape, Activation::kReLU, true, threads});
    }
  }
  return all;
}

double activated(Activation f, double v) {
  switch (f) {
    case Activation::kNone: break;
    case Activation::kReLU: return std::max(0.0, v);
    case Activation::kReLU6: return std::clamp(v, 0.0, 6.0);
    case Activation::kSiLU: return v / (1 + std::exp(-v));
  }
  return v;
}

double derivative(Activation f, double v) {
  switch (f) {
    case Activation::kNone: break;
    case Activation::kReLU: return v > 0 ? 1 : 0;
    case Activation::kReLU6: return v > 0 && v < 6 ? 1 : 0;
    case Activation::kSiLU: {
      const double s = 1 / (1 + std::exp(-v));
      return s + v * s * (1 - s);
    }
  }
  return 1;
}

// Everything in double, straight from the formulas. `frozen`: mean and var as given.
struct BatchNormReference {
  std::vector<double> y, mean, var, gx, ggamma, gbeta, gresidual;

  BatchNormReference(const Case& c, const Array& x, const Array& gamma, const Array& beta,
                     const Array& residual, const Array& gy, const Array* frozen_mean = nullptr,
                     const Array* frozen_var = nullptr) {
    const size_t channels = gamma.values.size(), n = x.values.size();
    const double m = static_cast<double>(n / channels);
    mean.assign(channels, 0);
    var.assign(channels, 0);
    for (size_t i = 0; i < n; ++i) mean[i % channels] += x[i] / m;
    for (size_t i = 0; i < n; ++i)
      var[i % channels] += std::pow(x[i] - mean[i % channels], 2) / m;
    if (frozen_mean) {
      mean.assign(frozen_mean->values.begin(), frozen_mean->values.end());
      var.assign(frozen_var->values.begin(), frozen_var->values.end());
    }
    ggamma.assign(channels, 0);
    gbeta.assign(channels, 0);
    const auto normal = [&](size_t i) {
      return (x[i] - mean[i % channels]) / std::sqrt(var[i % channels] + kBatchNormEps);
    };
    for (size_t i = 0; i < n; ++i) {
      double value = normal(i) * gamma[i % channels] + beta[i % channels];
      if (c.residual) value += residual[i];
      const double g = gy[i] * derivative(c.activation, value);
      y.push_back(activated(c.activation, value));
      gresidual.push_back(g);
      gbeta[i % channels] += g;
      ggamma[i % channels] += g * normal(i);
    }
    for (size_t i = 0; i < n; ++i) {
      const size_t k = i % channels;
      const double spread = frozen_mean ? 0 : gbeta[k] / m + normal(i) * ggamma[k] / m;
      gx.push_back(gamma[k] / std::sqrt(var[k] + kBatchNormEps) * (gresidual[i] - spread));
    }
  }
};

class BatchNorm : public ::testing::TestWithParam<Case> {
 protected:
  const Case c = GetParam();
  const BatchNormAttrs attrs{kBatchNormEps, static_cast<int64_t>(c.activation)};
  const Shape channels{c.shape.back()};
  Array x = Array::random(c.shape, 1, -2, 3);
  Array gamma = Array::random(channels, 2, 0.5, 6);  // values on both sides of 6
  Array beta = Array::random(channels, 3);
  Array residual = Array::random(c.shape, 4);
  Array gy = Array::random(c.shape, 5);

  std::vector<Array> with_residual(std::vector<Array> inputs) const {
    if (c.residual) inputs.push_back(residual);
    return inputs;
  }
  // y and its signs
  KernelRun normalise(const Array& mean, const Array& var) const {
    return run_kernel(kBatchNorm, with_residual({x, gamma, beta, mean, var}), attrs, c.threads);
  }
  // The residual's gradient, or what there is in its place.
  Array masked(const KernelRun& y) const {
    if (!c.residual) return gy;
    return run_kernel(kReluGrad, {gy, y[1]}, {}, c.threads,
                      {DType::kFloat32, DType::kInt32})[0];
  }
  KernelRun backward(const KernelRun& y, const Array& mean, const Array& var,
                     bool frozen = false) const {
    const int64_t f = c.residual ? 0 : attrs.activation;
    std::vector<Array> inputs{x, masked(y), gamma, mean, var};
    if (f != 0) inputs.push_back(beta);
    return run_kernel(kBatchNormGrad, inputs, BatchNormGradAttrs{kBatchNormEps, f, frozen},
                      c.threads);
  }
};

TEST_P(BatchNorm, AgreesWithTheDefinition) {
  const BatchNormReference reference(c, x, gamma, beta, residual, gy);
  const auto moments = run_kernel(kBatchMoments, {x}, {}, c.threads);
  const auto y = normalise(moments[0], moments[1]);
  expect_near(y[0], reference.y, 1e-5, "y");
  expect_near(moments[0], reference.mean, 1e-6, "mean");
  expect_near(moments[1], reference.var, 1e-6, "var");
  const auto grad = backward(y, moments[0], moments[1]);
  expect_near(grad[0], reference.gx, 2e-5, "gx");
  expect_near(grad[1], reference.ggamma, 1e-5, "ggamma");
  expect_near(grad[2], reference.gbeta, 1e-5, "gbeta");
  if (c.residual) expect_near(masked(y), reference.gresidual, 0, "gresidual");
}

TEST_P(BatchNorm, InferenceUsesTheGivenStatistics) {
  const Array mean = Array::random(channels, 6), var = Array::random(channels, 7, 0.5, 2);
  const BatchNormReference reference(c, x, gamma, beta, residual, gy, &mean, &var);
  const auto y = normalise(mean, var);
  expect_near(y[0], reference.y, 1e-5, "y");
  const auto grad = backward(y, mean, var, true);
  expect_near(grad[0], reference.gx, 1e-5, "gx");
  expect_near(grad[1], reference.ggamma, 1e-5, "ggamma");
  expect_near(grad[2], reference.gbeta, 1e-5, "gbeta");
}

TEST_P(BatchNorm, RepeatsToTheBit) {
  const auto moments = run_kernel(kBatchMoments, {x}, {}, c.threads);
  const auto y = normalise(moments[0], moments[1]);
  const auto grad = backward(y, moments[0], moments[1]);
  for (int i = 0; i < 3; ++i) {
    const auto moments_again = run_kernel(kBatchMoments, {x}, {}, c.threads);
    for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(same_bits(moments[k], moments_again[k]));
    const auto again = normalise(moments[0], moments[1]);
    const auto grad_again = backward(y, moments[0], moments[1]);
    for (size_t k = 0; k < y.outputs.size(); ++k) EXPECT_TRUE(same_bits(y[k], again[k]));
    for (size_t k = 0; k < grad.outputs.size(); ++k) {
      EXPECT_TRUE(same_bits(grad[k], grad_again[k]));
    }
  }
}

// Whole words: bits beyond the last element are 0.
TEST_P(BatchNorm, SignsAreThoseOfTheOutput) {
  if (!c.residual) return;
  const auto moments = run_kernel(kBatchMoments, {x}, {}, c.threads);
  const auto y = normalise(moments[0], moments[1]);
  const auto elements = static_cast<size_t>(c.shape.elements());
  std::vector<uint32_t> signs((elements + 31) / 32);
  for (size_t i = 0; i < elements; ++i) signs[i / 32] |= uint32_t{y[0][i] > 0} << i % 32;
  ASSERT_EQ(y.metas[1].bytes(), Bytes(static_cast<int64_t>(4 * signs.size())));
  EXPECT_EQ(std::memcmp(y[1].values.data(), signs.data(), 4 * signs.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNorm, ::testing::ValuesIn(cases()));

TEST(BatchNormMoments, KeepTheirDigitsFarFromZero) {
  Array x = Array::random({4, 32, 32, 8}, 1);
  for (float& value : x.values) value += 1000;
  const Array one = Array::filled({8}, 1), zero = Array::filled({8}, 0);
  const auto run = run_kernel(kBatchMoments, {x});
  const BatchNormReference reference({x.shape, Activation::kNone, false, 2}, x, one, zero, x,
                                     x);
  for (size_t c = 0; c < 8; ++c) {
    EXPECT_NEAR(run[1][c], reference.var[c], 1e-4) << c;
  }
}

TEST(BatchNormActivations, DoNotHideWhatIsNotANumber) {
  Array x = Array::random({4, 2, 2, 3}, 1);
  x.values[5] = std::nanf("");
  const Array one = Array::filled({3}, 1);
  const auto moments = run_kernel(kBatchMoments, {x});
  EXPECT_TRUE(std::isnan(moments[0][2]));
  for (const int64_t f : {1, 2, 3}) {
    const auto run =
        run_kernel(kBatchNorm, {x, one, one, one, one}, BatchNormAttrs{kBatchNormEps, f});
    EXPECT_TRUE(std::isnan(run[0][5])) << f;
  }
}

TEST(RunningStats, MoveByTheirMomentumWithTheUnbiasedVariance) {
  const Array running_mean = Array::random({5}, 1), running_var = Array::random({5}, 2, 0, 2);
  const Array mean = Array::random({5}, 3), var = Array::random({5}, 4, 0, 2);
  const double count = 24;
  const auto run = run_kernel(kUpdateRunningStats, {running_mean, running_var, mean, var}, {},
                              2, {}, {0.1, count / (count - 1)});
  for (size_t c = 0; c < 5; ++c) {
    EXPECT_NEAR(run.inputs[0][c], 0.9 * running_mean[c] + 0.1 * mean[c], 1e-6);
    EXPECT_NEAR(run.inputs[1][c], 0.9 * running_var[c] + 0.1 * var[c] * count / (count - 1),
                1e-6);
  }
  EXPECT_EQ(kUpdateRunningStats.written_inputs, 3u);
}

TEST(BatchNormErrors, NameTheOperatorAndTheShapes) {
  const std::vector<TensorMeta> in{TensorMeta::contiguous(DType::kFloat32, {2, 3, 3, 8}),
                                   TensorMeta::contiguous(DType::kFloat32, {8}),
                                   TensorMeta::contiguous(DType::kFloat32, {4}),
                                   TensorMeta::contiguous(DType::kFloat32, {8}),
                                   TensorMeta::contiguous(DType::kFloat32, {8})};
  const Attrs attrs = BatchNormAttrs{};
  try {
    kBatchNorm.infer({in, {}, attrs});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("[batch_norm] ", 0), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find("(2, 3, 3, 8), (8), (4)"), std::string::npos);
  }
}

TEST(BatchNormErrors, AResidualNeedsARelu) {
  std::vector<TensorMeta> in(6, TensorMeta::contiguous(DType::kFloat32, {8}));
  in[0] = in[5] = TensorMeta::contiguous(DType::kFloat32, {2, 8});
  for (const int64_t f : {0, 2, 3}) {
    const Attrs attrs = BatchNormAttrs{kBatchNormEps, f};
    EXPECT_THROW(kBatchNorm.infer({in, {}, attrs}), UsageError) << f;
  }
}

// Kernels read several channels as one only where they lie for that.
TEST(BatchNormTest, ViewsThatAreNotAlignedAreReadAsTheyLie) {
  Session session({.device = testing::device_under_test(), .threads = 1});
  const NoGrad no_grad;
  const Shape shape{37, 8};
  const auto shifted = [&](const Shape& as, uint32_t seed) {
    const Tensor all = testing::random_tensor({as.elements() + 1}, seed);
    return reshape(narrow(all, 0, 1, as.elements()), as);
  };
  const Tensor x = shifted(shape, 1), gamma = shifted({8}, 2), beta = shifted({8}, 3);
  const BatchNormAttrs attrs{kBatchNormEps, 0};
  const auto run = [&](const Tensor& from) {
    const std::vector<Tensor> moments = dispatch(kBatchMoments, {from});
    return std::vector{
        dispatch1(kBatchNorm, {from, gamma, beta, moments[0], moments[1]}, attrs), moments[0],
        moments[1]};
  };
  const std::vector<Tensor> as_they_lie = run(x), copied = run(dispatch1(kCopy, {x}));
  for (size_t i = 0; i < copied.size(); ++i) {
    const std::vector<float> a = testing::to_vector(as_they_lie[i]),
                             b = testing::to_vector(copied[i]);
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5) << i << ' ' << k;
  }
}

}  // namespace
}  // namespace tidemark::testing
