#include "ops/attention/rotary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elementwise/compare.h"
#include "ops/embedding/embedding.h"
#include "ops/view/view.h"
#include "tests/support/gradcheck.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

struct RotaryCase {
  Shape x;
  bool own = false;  // each sequence has angles of its own
};

void PrintTo(const RotaryCase& c, std::ostream* out) { *out << c.x.to_string() << c.own; }

Shape table_of(const RotaryCase& c) {
  const int64_t half = c.x[3] / 2;
  return c.own ? Shape{c.x[0], c.x[1], half} : Shape{c.x[1], half};
}

// y of rotary.h's formula, in float64; `sign` -1: the gradient's.
std::vector<double> define(const RotaryCase& c, const std::vector<float>& x,
                           const std::vector<float>& cos, const std::vector<float>& sin,
                           double sign) {
  std::vector<double> y(x.size());
  const auto tokens = static_cast<size_t>(c.x[1]), heads = static_cast<size_t>(c.x[2]);
  const size_t depth = static_cast<size_t>(c.x[3]), half = depth / 2;
  for (size_t row = 0; depth > 0 && row < x.size() / depth; ++row) {
    const size_t position = row / heads;
    const size_t angles = (c.own ? position : position % tokens) * half;
    for (size_t i = 0; i < half; ++i) {
      const double a = x[row * depth + i], b = x[row * depth + half + i];
      const double cosine = cos[angles + i], sine = sign * sin[angles + i];
      y[row * depth + i] = a * cosine - b * sine;
      y[row * depth + half + i] = b * cosine + a * sine;
    }
  }
  return y;
}

class Rotary : public ::testing::TestWithParam<RotaryCase> {
 protected:
  const RotaryCase c = GetParam();
  const Array x = Array::random(c.x, 1);
  const Array cos = Array::random(table_of(c), 2), sin = Array::random(table_of(c), 3);
};

TEST_P(Rotary, AgreesWithTheDefinition) {
  for (const bool inverse : {false, true}) {
    const KernelRun y = run_kernel(kRotary, {x, cos, sin}, RotaryAttrs{inverse});
    expect_near(y[0], define(c, x.values, cos.values, sin.values, inverse ? -1 : 1), 2e-7,
                inverse ? "inverse" : "y");
  }
}

TEST_P(Rotary, RepeatsToTheBitWhateverTheThreads) {
  const KernelRun alone = run_kernel(kRotary, {x, cos, sin}, RotaryAttrs{}, 1);
  for (const int threads : {2, 3}) {
    EXPECT_TRUE(
        same_bits(alone[0], run_kernel(kRotary, {x, cos, sin}, RotaryAttrs{}, threads)[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Rotary,
    ::testing::Values(RotaryCase{{1, 1, 1, 2}}, RotaryCase{{2, 3, 1, 6}},
                      RotaryCase{{2, 5, 3, 16}, true}, RotaryCase{{3, 40, 9, 64}},
                      RotaryCase{{1, 200, 4, 128}}, RotaryCase{{2, 7, 2, 34}, true},
                      RotaryCase{{4, 1, 2, 8}, true}, RotaryCase{{2, 3, 5, 256}}));

using RotaryTest = SessionTest;

struct Angles {
  Tensor cos, sin;
};

// The angles of consecutive positions.
Angles angles(int64_t tokens, int64_t depth) {
  std::vector<float> cosines, sines;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < depth / 2; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(100, -2.0 * static_cast<double>(i) / static_cast<double>(depth));
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return {from(cosines, {tokens, depth / 2}), from(sines, {tokens, depth / 2})};
}

// As in packed rows, where each sequence counts from 0.
TEST_F(RotaryTest, EmbeddingGathersTheRowsOfTablesByPosition) {
  const auto [cos, sin] = angles(5, 8);
  const Tensor positions = from(std::vector<int32_t>{0, 1, 2, 0, 1, 3, 4, 0}, {2, 4});
  const Tensor x = random_tensor({2, 4, 3, 8}, 1);
  const std::vector<float> y =
      to_vector(rotary(x, embedding(cos, positions), embedding(sin, positions)));
  const std::vector<int32_t> at{0, 1, 2, 0, 1, 3, 4, 0};
  for (int64_t i = 0; i < 8; ++i) {
    const Tensor one = narrow(narrow(x, 0, i / 4, 1), 1, i % 4, 1);
    const int64_t position = at[static_cast<size_t>(i)];
    const std::vector<float> expected =
        to_vector(rotary(one, narrow(cos, 0, position, 1), narrow(sin, 0, position, 1)));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.begin() + i * 24)) << i;
  }
  EXPECT_FALSE(requires_grad(embedding(cos, positions)));
}

TEST_F(RotaryTest, Gradients) {
  check_gradients(
      [](std::vector<Tensor> in) {
        const auto [cos, sin] = angles(3, 8);
        return rotary(in[0], cos, sin);
      },
      {{2, 3, 2, 8}});
  check_gradients(
      [](std::vector<Tensor> in) {
        const auto [cos, sin] = angles(5, 6);
        return transpose(rotary(transpose(in[0], 1, 2), cos, sin), 1, 2);
      },
      {{2, 2, 5, 6}});
}

// A product of a query and a key depends on the distance of their positions.
TEST_F(RotaryTest, ProductsDependOnTheDistance) {
  const auto [cos, sin] = angles(20, 16);
  const std::vector<float> q = random_values(16, 1), k = random_values(16, 2);
  const auto everywhere = [&](const std::vector<float>& row) {
    return to_vector(rotary(expand(from(row, {1, 1, 1, 16}), {1, 20, 1, 16}), cos, sin));
  };
  const std::vector<float> queries = everywhere(q), keys = everywhere(k);
  const auto product = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t d = 0; d < 16; ++d) sum += double{queries[i * 16 + d]} * keys[j * 16 + d];
    return sum;
  };
  for (size_t i = 5; i < 20; ++i) EXPECT_NEAR(product(i, i - 5), product(5, 0), 1e-5);
  EXPECT_GT(std::abs(product(5, 0) - product(9, 0)), 1e-2);
}

// Heads of a fused projection, heads that several queries share, transposed ones, and views
// that vectors of four elements do not fit, as the first or a later row begins elsewhere.
TEST_F(RotaryTest, TakesAnyStridesOfRows) {
  const auto [cos, sin] = angles(6, 8);
  const Tensor fused = random_tensor({2, 6, 9, 8}, 1);
  const Tensor shared = random_tensor({2, 6, 1, 8}, 2);
  const Tensor odd_heads = random_tensor({2, 6, 4, 11}, 3);
  const Tensor odd_rows = random_tensor({2, 3, 6, 10}, 7);
  const Tensor odd_sequences = random_tensor({6, 3, 2, 10}, 8);
  const Tensor odd_offset = random_tensor({2, 6, 3, 16}, 9);
  for (const Tensor& x :
       {narrow(fused, 2, 3, 3), expand(shared, {2, 6, 3, 8}),
        transpose(random_tensor({2, 3, 6, 8}, 4), 1, 2), narrow(odd_heads, 3, 0, 8),
        narrow(odd_offset, 3, 1, 8), transpose(narrow(odd_rows, 3, 0, 8), 1, 2),
        permute(narrow(odd_sequences, 3, 0, 8), {2, 0, 1, 3}),
        transpose(random_tensor({2, 6, 8, 3}, 5), 2, 3),
        expand(random_tensor({2, 1, 3, 8}, 6), {2, 6, 3, 8})}) {
    SCOPED_TRACE(x.meta().strides.to_string());
    const Tensor y = rotary(x, cos, sin);
    EXPECT_TRUE(y.meta().is_contiguous());
    EXPECT_EQ(to_vector(y), to_vector(rotary(contiguous(x), cos, sin)));
  }
}

TEST_F(RotaryTest, KeepsOnlyItsResult) {
  const auto [cos, sin] = angles(16, 64);
  const Tensor leaf = random_leaf({2, 16, 4, 64}, 1);
  const Bytes before = session_.arena().live()[Category::kActivation];
  const Tensor y = rotary(leaf, cos, sin);
  EXPECT_EQ(session_.arena().live()[Category::kActivation] - before, y.meta().bytes());
}

TEST_F(RotaryTest, NanStaysInItsPair) {
  std::vector<float> values(2 * 6, 1);
  values[6 + 1] = std::numeric_limits<float>::quiet_NaN();
  const auto [cos, sin] = angles(2, 6);
  const std::vector<float> y = to_vector(rotary(from(values, {1, 2, 1, 6}), cos, sin));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == 7 || i == 10) << i;
}

TEST_F(RotaryTest, RefusesWhatDoesNotFit) {
  const auto [cos, sin] = angles(3, 8);
  const Tensor x = random_tensor({2, 3, 2, 8}, 1);
  const Tensor odd = random_tensor({2, 3, 2, 7}, 1);
  EXPECT_EQ(usage_error([&, &c = cos, &s = sin] { rotary(odd, c, s); }),
            "[rotary] x must be (B, T, H, D) with an even D; inputs (2, 3, 2, 7), (3, 4), (3, "
            "4)");
  const Tensor longer = random_tensor({4, 4}, 1);
  EXPECT_EQ(usage_error([&] { rotary(x, longer, longer); }),
            "[rotary] cos and sin must both be (T, D/2) or (B, T, D/2); inputs (2, 3, 2, 8), "
            "(4, 4), (4, 4)");
  const auto expect_refusal = [](const Tensor& in, const Tensor& c, const Tensor& s) {
    const std::string error = usage_error([&] { rotary(in, c, s); });
    EXPECT_EQ(error.rfind("[rotary] ", 0), 0U) << error;
  };
  expect_refusal(x, cos, longer);
  expect_refusal(x, expand(cos, {2, 3, 4}), sin);
  expect_refusal(random_tensor({3, 2, 8}, 1), cos, sin);
  expect_refusal(random_tensor({0, 3, 2, 8}, 1), cos, sin);
  expect_refusal(from<int64_t>(std::vector<int64_t>(96), {2, 3, 2, 8}), cos, sin);
  expect_refusal(x, cast(cos, DType::kBFloat16), sin);
  expect_refusal(x, cos, cast(sin, DType::kBFloat16));
}

}  // namespace
}  // namespace tidemark::testing
