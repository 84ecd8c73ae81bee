#include "models/optim/optimizer.h"

#include <gmock/gmock.h>
#include <optional>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/checksum.h"
#include "models/nn/parameter_init.h"
#include "models/optim/clip.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"
#include "runtime/session/session.h"
#include "runtime/tensor/recipe.h"
#include "tests/support/usage_error.h"

namespace tidemark {
namespace {

using testing::usage_error;

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

TEST_F(OptimizerTest, OptionsThatMeanNothingAreRefusedByName) {
  const double nan = std::nan(""), infinite = HUGE_VAL;
  const auto sgd = [&](const SgdOptions& options) {
    return usage_error([&] { make_sgd(parameters(), options); });
  };
  EXPECT_EQ(sgd({.lr = nan}).rfind("[sgd] lr: ", 0), 0U) << sgd({.lr = nan});
  EXPECT_EQ(sgd({.lr = -1}).rfind("[sgd] lr: ", 0), 0U);
  EXPECT_EQ(sgd({.lr = infinite}).rfind("[sgd] lr: ", 0), 0U);
  EXPECT_EQ(sgd({.lr = 1, .momentum = -0.5}).rfind("[sgd] momentum: ", 0), 0U);
  EXPECT_EQ(sgd({.lr = 1, .momentum = nan}).rfind("[sgd] momentum: ", 0), 0U);
  EXPECT_EQ(sgd({.lr = 1, .momentum = 0.5, .dampening = nan}).rfind("[sgd] dampening: ", 0),
            0U);
  EXPECT_EQ(sgd({.lr = 1, .weight_decay = -1}).rfind("[sgd] weight_decay: ", 0), 0U);
  EXPECT_EQ(sgd({.lr = 1, .nesterov = true}).rfind("[sgd] nesterov ", 0), 0U);
  for (const bool fused : {true, false}) {
    const auto adam = [&](const AdamOptions& options) {
      return usage_error([&] {
        fused ? make_adam(parameters(), options) : make_unfused_adam(parameters(), options);
      });
    };
    EXPECT_EQ(adam({.lr = nan}).rfind("[adam] lr: ", 0), 0U);
    EXPECT_EQ(adam({.beta1 = 1}).rfind("[adam] beta1: ", 0), 0U);
    EXPECT_EQ(adam({.beta2 = -0.1}).rfind("[adam] beta2: ", 0), 0U);
    EXPECT_EQ(adam({.eps = -1e-8}).rfind("[adam] eps: ", 0), 0U);
    EXPECT_EQ(adam({.weight_decay = infinite}).rfind("[adam] weight_decay: ", 0), 0U);
    EXPECT_EQ(adam({.lr = 0, .beta1 = 0, .eps = 0}), "");
  }
  const auto optimizer = make_sgd(parameters(), {.lr = 0});
  for (const double rate : {nan, infinite, -1e-3}) {
    EXPECT_THROW(optimizer->set_learning_rate(rate), UsageError);
  }
  EXPECT_THROW(optimizer->set_update_counts({}), UsageError);
  EXPECT_THROW(optimizer->set_update_counts({-1}), UsageError);
  EXPECT_EQ(optimizer->learning_rate(), 0);
  EXPECT_EQ(optimizer->update_counts(), (std::vector<int64_t>{0}));
}

// Of a dead session, and of a live one that is not current.
TEST_F(OptimizerTest, TensorsOfOtherSessionsAreRefusedByName) {
  const SessionOptions options{.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)};
  const auto sgd = make_sgd(parameters(), {.lr = 0.5});
  const Tensor loss = sum(mul(weight_, factor_));
  Tensor orphan;
  std::unique_ptr<Optimizer> left;
  {
    Session other(options);
    orphan = upload_constant({2}, 1, Category::kParameter, "orphan");
    require_grad(orphan);
    left = make_sgd({{"orphan", orphan}}, {.lr = 1, .momentum = 0.5});
    backward(sum(mul(orphan, orphan)));
    const auto starts_with = [&](const std::string& name, const auto& use) {
      const std::string complaint = usage_error(use);
      EXPECT_EQ(complaint.rfind("[" + name + "] ", 0), 0U) << complaint;
      EXPECT_NE(complaint.find("another session"), std::string::npos) << complaint;
    };
    starts_with("mul", [&] { mul(weight_, orphan); });
    starts_with("backward", [&] { backward(loss); });
    starts_with("sgd", [&] { make_sgd(parameters(), {.lr = 1}); });
    starts_with("adam", [&] { make_adam(parameters(), {}); });
    starts_with("download", [&] { tensors_checksum({parameters()}); });
    session_.make_current();
    starts_with("backward", [&] { backward(loss, orphan); });
    backward(loss);
    other.make_current();
    starts_with("sgd", [&] { sgd->step(); });
    starts_with("clip_grad_norm_", [&] { clip_grad_norm_(parameters(), 1.0); });
  }
  const auto ended = [&](const auto& use) {
    const std::string complaint = usage_error(use);
    EXPECT_NE(complaint.find("has ended"), std::string::npos) << complaint;
  };
  ended([&] { mul(weight_, orphan); });
  ended([&] { left->step(); });
  ended([&] { clip_grad_norm_(std::vector<NamedTensor>{{"orphan", orphan}}, 1.0); });
  ended([&] { make_sgd({{"orphan", orphan}}, {.lr = 1}); });
  EXPECT_EQ(read(weight_), 2) << "nothing was done";
  sgd->step();
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

// The same rule in operators of one step of arithmetic each.
TEST(UnfusedAdam, AgreesWithTheFusedOne) {
  Session session({.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)});
  for (const AdamOptions& options :
       {AdamOptions{.lr = 0.1}, AdamOptions{.lr = 0.1, .weight_decay = 0.2},
        AdamOptions{.lr = 0.1, .weight_decay = 0.2, .decoupled = true}}) {
    SCOPED_TRACE(std::to_string(options.weight_decay) + " " +
                 std::to_string(options.decoupled));
    std::vector<std::vector<float>> values;
    for (const bool fused : {true, false}) {
      ParameterInit init(1);
      std::vector<NamedTensor> parameters{{"a", init.normal({3, 5}, 1)},
                                          {"b", init.normal({7}, 1)}};
      for (NamedTensor& one : parameters) require_grad(one.tensor);
      const auto adam =
          fused ? make_adam(parameters, options) : make_unfused_adam(parameters, options);
      std::map<std::string, int> ops;
      for (int i = 0; i < 5; ++i) {
        adam->set_learning_rate(0.1 / (i + 1));
        session.step([&] {
          for (const NamedTensor& one : parameters) backward(sum(mul(one.tensor, one.tensor)));
          ops.clear();
          std::optional<CallListener> listener(std::in_place, session,
                                               [&](const Recipe& call) { ++ops[call.name()]; });
          adam->step();
          listener.reset();
        });
      }
      EXPECT_EQ(ops.contains(kAdamStep.name), fused);
      EXPECT_EQ(ops[kSqrt.name], fused ? 0 : 2);
      for (const auto& list :
           {std::span(std::as_const(parameters)), std::span(adam->state())}) {
        for (size_t i = 0; i < list.size(); ++i) {
          std::vector<float> one(static_cast<size_t>(list[i].tensor.elements()));
          session.download(list[i].tensor, one.data());
          values.push_back(std::move(one));
        }
      }
    }
    const size_t each = values.size() / 2;
    for (size_t i = 0; i < each; ++i) {
      for (size_t j = 0; j < values[i].size(); ++j) {
        EXPECT_NEAR(values[each + i][j], values[i][j], 2e-6 * (1 + std::abs(values[i][j])));
      }
    }
  }
}

// Beside optimizers that decay all of the parameters, or none: the same bits.
TEST(Decay, OfMatricesOnly) {
  using Make = std::unique_ptr<Optimizer> (*)(const std::vector<NamedTensor>&, double);
  const Make rules[] = {
      [](const std::vector<NamedTensor>& p, double decay) {
        return make_sgd(p, {.lr = 0.5, .momentum = 0.9, .weight_decay = decay});
      },
      [](const std::vector<NamedTensor>& p, double decay) {
        return make_adam(p, {.lr = 0.1, .weight_decay = decay});
      },
      [](const std::vector<NamedTensor>& p, double decay) {
        return make_adam(p, {.lr = 0.1, .weight_decay = decay, .decoupled = true});
      },
      [](const std::vector<NamedTensor>& p, double decay) {
        return make_unfused_adam(p, {.lr = 0.1, .weight_decay = decay, .decoupled = true});
      }};
  for (const Make& make : rules) {
    // The values of each parameter after two steps; their shapes take turns.
    const auto train = [&](double decay, bool matrices_only) {
      Session session({.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)});
      std::vector<NamedTensor> parameters;
      for (const Shape& shape : {Shape{2, 3}, Shape{6}, Shape{3, 2}, Shape{1, 6}, Shape{}}) {
        parameters.push_back({"p", upload_constant(shape, 2, Category::kParameter, "p")});
        require_grad(parameters.back().tensor);
      }
      const auto optimizer = make(parameters, decay);
      if (matrices_only) optimizer->decay_matrices_only();
      for (int step = 0; step < 2; ++step) {
        for (const NamedTensor& each : parameters) {
          const Tensor& x = each.tensor;
          backward(sum(step == 0 ? scale(x, 3) : mul(x, x)));
        }
        optimizer->step();
      }
      std::vector<float> values;
      for (const NamedTensor& each : parameters) {
        std::vector<float> all(static_cast<size_t>(each.tensor.elements()));
        session.download(each.tensor, all.data());
        values.push_back(all.front());
      }
      return values;
    };
    const std::vector<float> none = train(0, false), all = train(0.3, false);
    EXPECT_NE(none, all);
    EXPECT_EQ(train(0.3, true), (std::vector{all[0], none[1], all[2], all[3], none[4]}));
  }
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

TEST_F(OptimizerTest, AnUpdateThatFailsIsNotCounted) {
  const auto sgd = make_sgd(parameters(), {.lr = 0.5, .momentum = 0.9});
  const CallListener listener(session_, [this](const Recipe& call) {
    const std::string_view name = call.name();
    if (name == kSgdMomentumStep.name) session_.residency().effort().stop();
  });
  EXPECT_THROW(step(*sgd), Effort::Stopped);
  EXPECT_EQ(sgd->update_counts(), std::vector<int64_t>{0});
}

// Parameters of many sizes, each with a gradient of its own, on the simulator or the CPU.
class GroupsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSizes[] = {70000, 1, 64, 7, 256, 1000, 16384, 16385, 64, 3,
                                       64,    5, 64, 2, 100, 128,  40000, 12,    9,  31};

  struct Run {
    std::vector<std::vector<float>> values;  // of parameters, then of state
    std::vector<size_t> sizes;               // of the updates: how many parameters in each
    Bytes largest{0};                        // of their working sets
  };
  using Make = std::function<std::unique_ptr<Optimizer>(std::vector<NamedTensor>)>;

  static Run run(const Make& make, const UpdateGroups& groups) {
    Session session({.device = "cpu", .threads = 1, .budget = Bytes(16 << 20)});
    std::vector<NamedTensor> parameters;
    std::vector<Tensor> factors;
    for (const int64_t size : kSizes) {
      parameters.push_back({"p" + std::to_string(parameters.size()),
                            upload_constant({size}, 1, Category::kParameter, "parameter")});
      require_grad(parameters.back().tensor);
      factors.push_back(uniform({size}, -1, 1));
    }
    const auto optimizer = make(parameters);
    optimizer->set_groups(groups);
    Run run;
    for (int step = 0; step < 3; ++step) {
      run.sizes.clear();
      session.step([&] {
        for (size_t i = 0; i < parameters.size(); ++i) {
          // Some begin later, and some have no gradient in the end.
          if ((i == 4 && step == 0) || (i == 5 && step == 2)) continue;
          backward(sum(mul(mul(parameters[i].tensor, parameters[i].tensor), factors[i])));
        }
        std::optional<CallListener> listener(std::in_place, session, [&](const Recipe& call) {
          Bytes bytes{0};
          size_t written = 0;
          for (const Recipe::Input& input : call.inputs) {
            bytes += input.storage->size();
            written += input.storage->category == Category::kParameter;
          }
          run.sizes.push_back(written);
          run.largest = std::max(run.largest, bytes);
        });
        optimizer->step();
        listener.reset();
      });
    }
    const auto read = [&](const std::vector<NamedTensor>& tensors) {
      for (const NamedTensor& tensor : tensors) {
        run.values.emplace_back(static_cast<size_t>(tensor.tensor.elements()));
        session.download(tensor.tensor, run.values.back().data());
      }
    };
    read(parameters);
    read(optimizer->state());
    return run;
  }
};

TEST_F(GroupsTest, ValuesAndTheLargestWorkingSetAreAsWithoutThem) {
  const std::vector<Make> optimizers{
      [](auto parameters) { return make_sgd(parameters, {.lr = 0.1}); },
      [](auto parameters) {
        return make_sgd(parameters, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
      },
      [](auto parameters) {
        return make_adam(parameters, {.lr = 0.1, .weight_decay = 0.01, .decoupled = true});
      }};
  for (const Make& make : optimizers) {
    const Run alone = run(make, {.most_of_parameter = Bytes(0)});
    EXPECT_EQ(alone.sizes, std::vector<size_t>(std::size(kSizes) - 1, 1));
    for (const UpdateGroups& groups :
         {UpdateGroups{}, UpdateGroups{.most_of_group = Bytes(8 << 10)},
          // Nothing but the largest update limits these.
          UpdateGroups{.most_of_parameter = Bytes(1 << 20), .most_of_group = Bytes(1 << 30)},
          UpdateGroups{.most_parameters = 3}}) {
      const Run grouped = run(make, groups);
      EXPECT_EQ(grouped.values, alone.values);
      EXPECT_LT(grouped.sizes.size(), alone.sizes.size());
      EXPECT_LE(grouped.largest, alone.largest);
      EXPECT_LE(*std::max_element(grouped.sizes.begin(), grouped.sizes.end()),
                groups.most_parameters);
    }
  }
}

TEST_F(GroupsTest, LargeOnesGoAloneSmallOnesTogether) {
  const Run grouped = run([](auto p) { return make_sgd(p, {.lr = 0.1}); }, {});
  // 70000, 16385 and 40000 elements are more than 64 KiB; the rest fits into the room that the
  // update of the largest takes. Number 4 is an update behind, so it goes by itself.
  EXPECT_THAT(grouped.sizes, ::testing::ElementsAre(1, 3, 1, 1, 1, 12));
}

TEST_F(GroupsTest, ParametersThatShareMemoryAreUpdatedOneAfterTheOther) {
  Session session({.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)});
  Tensor whole = upload_constant({8}, 1, Category::kParameter, "whole");
  Tensor first = narrow(whole, 0, 0, 8), again = narrow(whole, 0, 0, 8);
  // The update of this one is large enough for a group of both.
  Tensor large = upload_constant({4096}, 1, Category::kParameter, "large");
  for (Tensor* parameter : {&first, &again, &large}) require_grad(*parameter);
  const auto sgd =
      make_sgd({{"first", first}, {"again", again}, {"large", large}}, {.lr = 0.25});
  int updates = 0;
  session.step([&] {
    for (const Tensor& parameter : {first, again, large}) {
      backward(sum(mul(parameter, parameter)));
    }
    std::optional<CallListener> listener(std::in_place, session,
                                         [&](const Recipe&) { ++updates; });
    sgd->step();
    listener.reset();
  });
  EXPECT_EQ(updates, 3);
  std::vector<float> values(8);
  session.download(whole, values.data());
  EXPECT_EQ(values, std::vector<float>(8, 0));
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
