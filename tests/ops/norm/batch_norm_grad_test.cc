// Through the session: the public functions, their gradients, and what is written in place.
#include "ops/norm/batch_norm.h"

#include <gmock/gmock.h>

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/relu.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/running_stats.h"
#include "tests/support/gradcheck.h"

namespace tidemark {
namespace {

using testing::check_gradients;
using ::testing::FloatNear;
using testing::from;
using ::testing::Pointwise;
using testing::random_leaf;
using testing::random_tensor;
using testing::to_vector;
using testing::usage_error;

class BatchNormGrad : public testing::SessionTest {
 protected:
  const Tensor mean = random_tensor({3}, 8);
  const Tensor var = random_tensor({3}, 9, 0.5, 2);
};

TEST_F(BatchNormGrad, AgreesWithFiniteDifferences) {
  check_gradients(
      [](std::vector<Tensor> in) { return batch_norm(in[0], in[1], in[2], 1e-3).y; },
      {{3, 4, 5, 3}, {3}, {3}});
}

TEST_F(BatchNormGrad, OfInferenceAgreesWithFiniteDifferences) {
  check_gradients(
      [&](std::vector<Tensor> in) {
        return batch_norm_inference(in[0], in[1], in[2], mean, var, 1e-3);
      },
      {{2, 4, 5, 3}, {3}, {3}});
}

TEST_F(BatchNormGrad, OfSiluAgreesWithFiniteDifferences) {
  check_gradients(
      [](std::vector<Tensor> in) {
        return batch_norm(in[0], in[1], in[2], 1e-3, Activation::kSiLU).y;
      },
      {{3, 4, 5, 3}, {3}, {3}});
}

// Finite differences do not suit a kink: the fused operator against the separate ones.
class Fused : public BatchNormGrad {
 protected:
  using Function = std::function<Tensor(const std::vector<Tensor>&)>;

  static void expect_same(const Function& fused, const Function& separate, bool residual) {
    std::vector<std::vector<float>> results[2];
    for (const size_t i : {0u, 1u}) {
      std::vector<Tensor> leaves{random_leaf({2, 4, 5, 3}, 1), random_leaf({3}, 2, 0.5, 2),
                                 random_leaf({3}, 3)};
      if (residual) leaves.push_back(random_leaf({2, 4, 5, 3}, 4));
      const Tensor y = i == 0 ? fused(leaves) : separate(leaves);
      backward(y, random_tensor(y.shape(), 5));
      results[i].push_back(to_vector(y));
      for (const Tensor& leaf : leaves) results[i].push_back(to_vector(grad_of(leaf)));
    }
    for (size_t k = 0; k < results[0].size(); ++k) {
      EXPECT_THAT(results[0][k], Pointwise(FloatNear(1e-5F), results[1][k])) << k;
    }
  }
};

TEST_F(Fused, IsBatchNormThenTheActivation) {
  using Apply = Tensor (*)(const Tensor&);
  const std::vector<std::pair<Activation, Apply>> all{
      {Activation::kReLU, relu}, {Activation::kReLU6, relu6}, {Activation::kSiLU, silu}};
  for (const auto& [f, apply] : all) {
    SCOPED_TRACE(static_cast<int64_t>(f));
    const Activation fused = f;
    const Apply separate = apply;
    expect_same(
        [=](const auto& in) { return batch_norm(in[0], in[1], in[2], 1e-3, fused).y; },
        [=](const auto& in) { return separate(batch_norm(in[0], in[1], in[2], 1e-3).y); },
        false);
    expect_same(
        [&, fused](const auto& in) {
          return batch_norm_inference(in[0], in[1], in[2], mean, var, 1e-3, fused);
        },
        [&, separate](const auto& in) {
          return separate(batch_norm_inference(in[0], in[1], in[2], mean, var, 1e-3));
        },
        false);
  }
}

TEST_F(Fused, WithResidualIsBatchNormThenAddThenRelu) {
  expect_same(
      [](const auto& in) {
        return batch_norm(in[0], in[1], in[2], 1e-3, Activation::kReLU, in[3]).y;
      },
      [](const auto& in) { return relu(add(batch_norm(in[0], in[1], in[2], 1e-3).y, in[3])); },
      true);
  expect_same(
      [&](const auto& in) {
        return batch_norm_inference(in[0], in[1], in[2], mean, var, 1e-3, Activation::kReLU,
                                    in[3]);
      },
      [&](const auto& in) {
        return relu(add(batch_norm_inference(in[0], in[1], in[2], mean, var, 1e-3), in[3]));
      },
      true);
}

TEST_F(BatchNormGrad, RunningStatisticsAreWrittenByTheirOwnOperatorAlone) {
  const Tensor x = random_leaf({4, 3, 3, 3}, 1);
  const Tensor gamma = random_leaf({3}, 2), beta = random_leaf({3}, 3);
  const Tensor running_mean = from(std::vector<float>(3, 0), {3});
  const Tensor running_var = from(std::vector<float>(3, 1), {3});
  const BatchNormResult result = batch_norm(x, gamma, beta);
  update_running_stats_(running_mean, running_var, result.mean, result.var, 1.0, 36);
  backward(result.y, random_tensor(result.y.shape(), 4));
  EXPECT_EQ(to_vector(running_mean), to_vector(result.mean));
  std::vector<float> unbiased = to_vector(result.var);
  for (float& value : unbiased) value *= 36.0F / 35;
  testing::expect_close(running_var, unbiased);
}

TEST_F(BatchNormGrad, RefusesWhatHasNoMeaning) {
  const Tensor one = random_tensor({1}, 1);
  EXPECT_EQ(usage_error([&] {
              update_running_stats_(one, one, one, one, 0.1, 1);
            }).rfind("[update_running_stats_] ", 0),
            0u);
  EXPECT_EQ(usage_error([&] {
              batch_norm(random_tensor({2, 2}, 1), one, one);
            }).rfind("[batch_norm] ", 0),
            0u);
}

}  // namespace
}  // namespace tidemark
