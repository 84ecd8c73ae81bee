#include "ops/random/random.h"

#include <cmath>
#include <optional>

#include "ops/elementwise/elementwise.h"
#include "ops/random/numbers.h"
#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using RandomTest = SessionTest;

// Number k of the session's stream, one at a time.
uint32_t number(uint64_t seed, uint64_t k) { return random_block(seed, k / 4)[k % 4]; }

TEST_F(RandomTest, UniformIsTheStreamInOrder) {
  const uint64_t start = session_.reserve_random(0);
  const std::vector<float> values = to_vector(uniform({100001}, -2, 3));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], -2 + 5 * uniform_float(number(42, start + i))) << i;
  }
}

TEST_F(RandomTest, AnyOffsetIsHonoured) {
  session_.reserve_random(3);
  const std::vector<float> values = to_vector(uniform({10}));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(values[i], uniform_float(number(42, 3 + i)));
}

TEST_F(RandomTest, CallsDrawDifferentNumbersAndSessionsOfOneSeedTheSame) {
  const std::vector<float> first = to_vector(uniform({7})), second = to_vector(uniform({7}));
  EXPECT_NE(first, second);
  Session other(options());
  EXPECT_EQ(to_vector(uniform({7})), first);
  EXPECT_EQ(to_vector(uniform({7})), second);
  SessionOptions another_seed = options();
  another_seed.seed = 43;
  Session third(another_seed);
  EXPECT_NE(to_vector(uniform({7})), first);
}

TEST_F(RandomTest, ThreadsDoNotMatter) {
  const std::vector<float> values = to_vector(normal({100001}));
  SessionOptions single = options();
  single.threads = 1;
  Session other(single);
  EXPECT_TRUE(same_bits(to_vector(normal({100001})), values));
}

TEST_F(RandomTest, NormalHasItsMoments) {
  const std::vector<float> values = to_vector(normal({200000}, 1, 2));
  double sum = 0, squares = 0, cubes = 0;
  int64_t within = 0;
  for (float value : values) {
    const double z = (value - 1.0) / 2;
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    within += std::abs(z) < 1;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(cubes / n, 0, 0.04);
  EXPECT_NEAR(static_cast<double>(within) / n, 0.6827, 0.005);
  EXPECT_EQ(normal({3}).elements(), 3);
  EXPECT_EQ(to_vector(normal({0})).size(), 0u);
}

TEST_F(RandomTest, DropoutDropsAShareAndScalesTheRest) {
  const Tensor x = from(std::vector<float>(100000, 2), {100000});
  const std::vector<float> y = to_vector(dropout(x, 0.25));
  int64_t dropped = 0;
  for (float value : y) {
    if (value == 0) {
      ++dropped;
    } else {
      ASSERT_EQ(value, 2 * static_cast<float>(1 / 0.75));
    }
  }
  EXPECT_NEAR(static_cast<double>(dropped) / 100000, 0.25, 0.01);
}

TEST_F(RandomTest, BackwardDrawsTheMaskOfItsForward) {
  Tensor x = from(std::vector<float>(50000, 1), {100, 500});
  require_grad(x);
  const Tensor first = dropout(x, 0.5);
  const Tensor second = dropout(x, 0.5);
  EXPECT_NE(to_vector(first), to_vector(second));
  const std::vector<float> ones(50000, 1);
  backward(first, from(ones, {100, 500}));
  EXPECT_EQ(to_vector(grad_of(x)), to_vector(first));
  clear_grad(x);
  backward(second, from(ones, {100, 500}));
  EXPECT_EQ(to_vector(grad_of(x)), to_vector(second));
}

TEST_F(RandomTest, DropoutTakesTheStreamInOrderFromAnyOffset) {
  for (const uint64_t shift : {0u, 1u, 3u}) {
    session_.reserve_random(shift);
    for (const int64_t n : {1, 5, 255, 256, 1000, 100003}) {
      const std::vector<float> x = random_values(n, 1, 1, 2);
      const uint64_t start = session_.reserve_random(0);
      const std::vector<float> y = to_vector(dropout(from(x, {n}), 0.25));
      for (size_t i = 0; i < y.size(); ++i) {
        const float kept = x[i] * static_cast<float>(1 / 0.75);
        ASSERT_EQ(y[i], number(42, start + i) >= 0x40000000u ? kept : 0) << n << " " << i;
      }
    }
  }
}

TEST_F(RandomTest, DropoutOfAViewIsThatOfItsElements) {
  const Tensor x = random_tensor({30, 20}, 1, 1, 2);
  const uint64_t start = session_.reserve_random(0);
  const std::vector<float> y = to_vector(dropout(transpose(x, 0, 1), 0.5));
  const std::vector<float> values = to_vector(transpose(x, 0, 1));
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], number(42, start + i) >= 0x80000000u ? values[i] * 2 : 0) << i;
  }
}

// Gapless, but not where vectors begin.
TEST_F(RandomTest, DropoutOfTheMiddleOfATensor) {
  for (const int64_t begin : {1, 2, 4}) {
    const Tensor x = narrow(random_tensor({300}, 1, 1, 2), 0, begin, 203);
    const uint64_t start = session_.reserve_random(0);
    const std::vector<float> y = to_vector(dropout(x, 0.5));
    const std::vector<float> values = to_vector(x);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], number(42, start + i) >= 0x80000000u ? values[i] * 2 : 0) << i;
    }
  }
}

// Nothing lives on for backward: neither a mask nor the input.
TEST_F(RandomTest, DropoutStoresNoMask) {
  Tensor x = random_leaf({1000}, 1);
  const Tensor seed = random_tensor({1000}, 2);
  const Tensor y = dropout(x, 0.5);
  EXPECT_EQ(session_.arena().live()[Category::kActivation], align_up(Bytes(4000)));
  std::vector<std::string> launched;
  std::optional<CallListener> listener(std::in_place, session_, [&](const Recipe& call) {
    const std::string_view name = call.name();
    launched.push_back(std::string(name) + " of " + std::to_string(call.inputs.size()));
  });
  backward(y, seed);
  listener.reset();
  EXPECT_EQ(launched, std::vector<std::string>{"dropout of 1"});
}

TEST_F(RandomTest, EdgesOfDropout) {
  const Tensor x = random_tensor({3}, 1);
  EXPECT_EQ(dropout(x, 0).storage().get(), x.storage().get());
  EXPECT_THROW(dropout(x, 1), UsageError);
  EXPECT_THROW(dropout(x, -0.1), UsageError);
  EXPECT_EQ(dropout(from<float>({}, {0}), 0.5).elements(), 0);
}

}  // namespace
}  // namespace tidemark::testing
