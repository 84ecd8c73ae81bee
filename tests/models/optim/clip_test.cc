#include "models/optim/clip.h"

#include <gmock/gmock.h>
#include <optional>

#include <algorithm>
#include <cmath>

#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

class ClipTest : public SessionTest {
 protected:
  // A leaf whose gradient is `gradient`.
  Tensor leaf(const std::vector<float>& gradient) {
    const Shape shape{static_cast<int64_t>(gradient.size())};
    Tensor x = random_leaf(shape, 1);
    backward(scale(x, 1), from(gradient, shape));
    return x;
  }
};

TEST_F(ClipTest, ScalesAllByTheNormOfAll) {
  const Tensor a = leaf({3, 0}), b = leaf({0, 4, 12}), none = random_leaf({2}, 1);
  const std::vector<NamedTensor> parameters{{"a", a}, {"none", none}, {"b", b}};
  const Tensor norm = clip_grad_norm_(parameters, 6.5);
  EXPECT_FLOAT_EQ(to_vector(norm)[0], 13);
  expect_close(grad_of(a), std::vector<double>{1.5, 0});
  expect_close(grad_of(b), std::vector<double>{0, 2, 6});
  EXPECT_FALSE(grad_of(none));
}

// Small ones together, large ones alone; never more at once than the largest takes, so that the
// smallest feasible budget is as if each went by itself.
TEST_F(ClipTest, SmallGradientsShareOperators) {
  std::vector<NamedTensor> parameters;
  double squares = 0;
  std::vector<std::vector<float>> gradients;
  for (const int64_t size : {40000, 10, 300, 20000, 16384, 1, 7000, 16385, 5, 12000, 9000}) {
    gradients.push_back(random_values(size, static_cast<uint32_t>(size)));
    for (const float g : gradients.back()) squares += double{g} * g;
    parameters.push_back({"p", leaf(gradients.back())});
  }
  std::vector<size_t> clipped;
  size_t norms = 0;
  Bytes largest{0};
  std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
    const std::string_view name = call.name();
    norms += name == "norm";
    if (name != "clip_") return;
    clipped.push_back(call.inputs.size() - 1);  // and the norm, which is one storage
    Bytes bytes{0};
    for (const Recipe::Input& input : call.inputs) bytes += input.storage->size();
    largest = std::max(largest, bytes - call.inputs[1].storage->size());
  });
  const double norm = to_vector(clip_grad_norm_(parameters, 1))[0];
  listener.reset();
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-6 * norm);
  EXPECT_THAT(clipped, ::testing::ElementsAre(1, 1, 1, 7, 1));
  EXPECT_EQ(norms, clipped.size());
  EXPECT_EQ(largest, align_up(Bytes(4 * 40000)));
  for (size_t p = 0; p < parameters.size(); ++p) {
    for (float& g : gradients[p]) g = static_cast<float>(g / norm);
    expect_close(grad_of(parameters[p].tensor), gradients[p], 1e-6);
  }
}

TEST_F(ClipTest, BelowTheLimitNothingChanges) {
  const std::vector<float> gradient = random_values(5000, 1);
  const Tensor a = leaf(gradient);
  const std::vector<NamedTensor> parameters{{"a", a}};
  clip_grad_norm_(parameters, 1e3);
  EXPECT_TRUE(same_bits(to_vector(grad_of(a)), gradient));
}

TEST_F(ClipTest, NothingToClip) {
  const std::vector<NamedTensor> parameters{{"none", random_leaf({2}, 1)}};
  EXPECT_FALSE(clip_grad_norm_(parameters, 1));
}

// The gradients of a + b are one tensor, that of a sum one element seen many times, and those
// of parts lie in the whole: each is scaled once.
TEST_F(ClipTest, GradientsThatShareMemoryAreScaledOnce) {
  const Tensor a = random_leaf({4}, 1), b = random_leaf({4}, 2), c = random_leaf({9}, 3);
  const Tensor d = random_leaf({2}, 4), e = random_leaf({2}, 5);
  backward(add(a, b), from<float>({2, 0, 0, 0}, {4}));
  backward(sum(c));
  backward(add(concat({d, e}, 0), random_tensor({4}, 6)), from<float>({0, 0, 0, 2}, {4}));
  const std::vector<NamedTensor> parameters{{"a", a}, {"b", b}, {"c", c}, {"d", d}, {"e", e}};
  const double norm = std::sqrt(4 + 4 + 9 + 4.0), factor = 1 / norm;
  EXPECT_NEAR(to_vector(clip_grad_norm_(parameters, 1))[0], norm, 1e-6);
  expect_close(grad_of(a), std::vector<double>{2 * factor, 0, 0, 0});
  expect_close(grad_of(b), std::vector<double>{2 * factor, 0, 0, 0});
  expect_close(grad_of(c), std::vector<double>(9, factor));
  expect_close(grad_of(d), std::vector<double>{0, 0});
  expect_close(grad_of(e), std::vector<double>{0, 2 * factor});
}

TEST_F(ClipTest, WhatIsNoNumberSpreads) {
  const Tensor a = leaf({NAN, 1}), b = leaf({2});
  const std::vector<NamedTensor> parameters{{"a", a}, {"b", b}};
  EXPECT_TRUE(std::isnan(to_vector(clip_grad_norm_(parameters, 1))[0]));
  EXPECT_TRUE(std::isnan(to_vector(grad_of(b))[0]));
  const Tensor c = leaf({INFINITY, 1});
  const std::vector<NamedTensor> more{{"c", c}};
  EXPECT_TRUE(std::isinf(to_vector(clip_grad_norm_(more, 1))[0]));
  EXPECT_EQ(to_vector(grad_of(c))[1], 0);
}

TEST_F(ClipTest, ALimitMustBePositive) {
  const std::vector<NamedTensor> parameters{{"a", leaf({1})}};
  EXPECT_EQ(usage_error([&] { clip_grad_norm_(parameters, 0); }),
            "[clip_] the maximum norm must be positive, not 0.000000");
}

}  // namespace
}  // namespace tidemark::testing
