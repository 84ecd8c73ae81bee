// What a call keeps for its gradient goes as soon as nothing more reads it: memory in the
// backward pass, of every network.
#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/matmul.h"
#include "ops/norm/batch_norm.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

class SavedTest : public SessionTest {
 protected:
  bool in_use(const Storage* storage) {
    const auto all = session_.residency().storages().in_use();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& one) { return one.get() == storage; });
  }

  // Whether the operator's first operand, which nothing else needs, is still there at the last
  // call named `made_by`, which makes its gradient.
  bool first_operand_is_there(const std::function<Tensor(const Tensor&)>& op,
                              const Shape& shape, std::string_view made_by) {
    const Tensor leaf = random_leaf(shape, 1);
    const Storage* operand = nullptr;
    const Tensor y = [&] {
      const Tensor x = scale(leaf, 2);
      operand = x.storage().get();
      return op(x);
    }();
    EXPECT_TRUE(in_use(operand));
    bool there = true;
    std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
      const std::string_view name = call.name();
      if (name == made_by) there = in_use(operand);
    });
    backward(y, random_tensor(y.shape(), 3));
    listener.reset();
    EXPECT_TRUE(grad_of(leaf).defined());
    return there;
  }

  // Goes backward from y, calls see(name, call), and returns how many calls have that name.
  int count_calls(const Tensor& y, std::string_view name,
                  const std::function<void(std::string_view, const Recipe&)>& see) {
    int count = 0;
    std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
      const std::string_view called = call.name();
      if (called == name) ++count;
      see(called, call);
    });
    backward(y, random_tensor(y.shape(), 3));
    listener.reset();
    return count;
  }
};

TEST_F(SavedTest, AnOperandIsGoneWhenItsGradientComes) {
  const Tensor kernel = random_leaf({3, 3, 3, 2}, 2), bias = random_leaf({3}, 4);
  EXPECT_FALSE(first_operand_is_there([&](const Tensor& x) { return conv2d(x, kernel, bias); },
                                      {2, 5, 5, 2}, "conv2d_grad_input"));
  const Tensor matrix = random_leaf({4, 6}, 2);
  EXPECT_FALSE(first_operand_is_there([&](const Tensor& x) { return matmul(x, matrix); },
                                      {5, 4}, "matmul"));
  const Tensor row = random_leaf({4}, 2);
  EXPECT_FALSE(
      first_operand_is_there([&](const Tensor& x) { return mul(x, row); }, {5, 4}, "mul"));
}

// Of the ReLU after the addition of a residual: its output and its gradient.
TEST_F(SavedTest, OfAResidualLayerOnlyTheInputIsLeftForTheNormalisation) {
  const Tensor leaf = random_leaf({2, 3, 3, 4}, 1);
  const Tensor gamma = random_leaf({4}, 2, 0.5, 1.5), beta = random_leaf({4}, 3);
  const Storage *output = nullptr, *gradient = nullptr;
  const Tensor y = [&] {
    const Tensor x = scale(leaf, 2);
    const Tensor out = batch_norm(x, gamma, beta, 1e-3, Activation::kReLU, leaf).y;
    output = out.storage().get();
    return scale(out, 3);
  }();
  const auto see = [&](std::string_view name, const Recipe& call) {
    if (name == "relu_grad") gradient = call.inputs.front().storage.get();
    EXPECT_FALSE(name == "batch_norm_grad" && (in_use(output) || in_use(gradient)));
  };
  EXPECT_EQ(count_calls(y, "batch_norm_grad", see), 1);
}

TEST_F(SavedTest, WhatACallKeptIsGoneWhenItsGradientIsAddedToAnother) {
  const Tensor leaf = random_leaf({5, 4}, 1);
  const Storage *first = nullptr, *second = nullptr;
  const Tensor y = [&] {
    const Tensor x = scale(leaf, 2);
    const Tensor a = exp(x), b = tanh(x);
    first = a.storage().get();
    second = b.storage().get();
    return add(a, b);
  }();
  EXPECT_TRUE(in_use(first) && in_use(second));
  const auto see = [&](std::string_view name, const Recipe&) {
    EXPECT_FALSE(name == "accumulate" && (in_use(first) || in_use(second)));
  };
  EXPECT_EQ(count_calls(y, "accumulate", see), 1);
}

}  // namespace
}  // namespace tidemark::testing
