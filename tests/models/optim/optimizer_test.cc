#include "models/optim/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>

#include "models/nn/parameter_init.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

// A parameter w = (2, 2) whose loss is 3 * sum(w), so that every gradient is 3.
class OptimizerTest : public ::testing::Test {
 protected:
  OptimizerTest() { require_grad(weight_); }
  std::vector<NamedTensor> parameters() { return {{"w", weight_}}; }
  void step(Optimizer& optimizer) {
    session_.step([&] {
      backward(sum(mul(weight_, factor_)));
      optimizer.step();
    });
  }
  float value() { return read(weight_); }
  float read(const Tensor& tensor) {
    float values[2] = {};
    session_.download(tensor, values);
    EXPECT_EQ(values[0], values[1]);
    return values[0];
  }

  Session session_{{.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)}};
  Tensor weight_ = upload_constant({2}, 2, Category::kParameter, "w");
  Tensor factor_ = upload_constant({2}, 3, Category::kData, "factor");
};

TEST_F(OptimizerTest, PlainSgdHasNoState) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5});
  EXPECT_TRUE(sgd->state().empty());
  step(*sgd);
  EXPECT_FLOAT_EQ(value(), 2 - 0.5F * 3);
}

TEST_F(OptimizerTest, MomentumDecayAndRate) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1});
  step(*sgd);
  const float v1 = 3 + 0.1F * 2, w1 = 2 - 0.5F * v1;
  EXPECT_FLOAT_EQ(value(), w1);
  sgd->set_learning_rate(0.25);
  step(*sgd);
  const float v2 = 0.9F * v1 + 3 + 0.1F * w1;
  EXPECT_FLOAT_EQ(value(), w1 - 0.25F * v2);
  EXPECT_FLOAT_EQ(read(sgd->state()[0].tensor), v2);
  EXPECT_EQ(sgd->state()[0].name, "w.momentum");
}

TEST_F(OptimizerTest, NesterovLooksAhead) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5, .momentum = 0.9, .nesterov = true});
  step(*sgd);
  EXPECT_FLOAT_EQ(value(), 2 - 0.5F * (3 + 0.9F * 3));
}

// With a constant gradient both means are exact after correction: each step is lr * sign(g).
TEST_F(OptimizerTest, AdamCorrectsItsBias) {
  const auto adam = make_adam(parameters(), {.lr = 0.25});
  step(*adam);
  EXPECT_NEAR(value(), 1.75, 1e-6);
  step(*adam);
  EXPECT_NEAR(value(), 1.5, 1e-6);
  ASSERT_EQ(adam->state().size(), 2u);
  EXPECT_EQ(adam->state()[1].name, "w.variance");
  EXPECT_NEAR(read(adam->state()[0].tensor), 3 * (1 - 0.9 * 0.9), 1e-6);
}

TEST_F(OptimizerTest, AdamwDecaysTheWeightItself) {
  const auto adamw =
      make_adam(parameters(), {.lr = 0.25, .weight_decay = 0.1, .decoupled = true});
  step(*adamw);
  EXPECT_NEAR(value(), 2 * (1 - 0.25 * 0.1) - 0.25, 1e-6);
}

TEST_F(OptimizerTest, StateIsThereBeforeTheFirstStepAndIsTagged) {
  const auto adam = make_adam(parameters(), {});
  for (const NamedTensor& state : adam->state()) {
    EXPECT_EQ(state.tensor.storage()->category, Category::kOptimizerState);
    EXPECT_EQ(read(state.tensor), 0);
  }
  EXPECT_EQ(session_.arena().live()[Category::kOptimizerState], 2 * kAlignment);
}

TEST_F(OptimizerTest, StepDropsGradients) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5});
  step(*sgd);
  EXPECT_FALSE(grad_of(weight_));
  EXPECT_EQ(session_.arena().live()[Category::kGradient], Bytes(0));
}

TEST_F(OptimizerTest, WithoutAGradientAParameterStays) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5, .momentum = 0.9});
  session_.step([&] { sgd->step(); });
  EXPECT_EQ(value(), 2);
}

TEST_F(OptimizerTest, ZeroGradForgets) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5});
  session_.step([&] {
    backward(sum(mul(weight_, factor_)));
    sgd->zero_grad();
    sgd->step();
  });
  EXPECT_EQ(value(), 2);
}

}  // namespace
}  // namespace tidemark
