#include "models/nn/parameter_init.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/bfloat16.h"
#include "runtime/session/session.h"
#include "tests/support/values.h"

namespace tidemark {
namespace {

using testing::to_vector;

// Computed by scripts/make_golden.py, draw_normal(7, 3, 5, 0.5) and draw_uniform(7, 4, 5,
// 0.25).
TEST(ParameterInit, DrawsAreThoseOfTheGoldenFiles) {
  const std::vector<float> normal = draw_normal(7, 3, 5, 0.5);
  const std::vector<float> uniform = draw_uniform(7, 4, 5, 0.25);
  EXPECT_THAT(normal, ::testing::Pointwise(
                          ::testing::FloatEq(),
                          (std::vector<float>{-0.277472377F, -0.610443771F, 0.130244002F,
                                              -0.629182279F, -1.09809363F})));
  EXPECT_THAT(uniform, ::testing::ElementsAre(0.138485759F, 0.152996331F, 0.136675209F,
                                              0.17407763F, -0.0588448346F));
}

TEST(ParameterInit, NormalHasItsMoments) {
  const std::vector<float> values = draw_normal(1, 0, 100'000, 2.0);
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += static_cast<double>(v) * v;
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 4 * 2.0 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 4.0, 0.1);
}

TEST(ParameterInit, UniformStaysWithinItsBound) {
  const std::vector<float> values = draw_uniform(1, 0, 10'000, 0.25);
  EXPECT_THAT(values,
              ::testing::Each(::testing::AllOf(::testing::Ge(-0.25F), ::testing::Lt(0.25F))));
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.24F);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.24F);
}

TEST(ParameterInit, IndexCountsParametersAndNotBuffers) {
  Session session({.device = "cpu", .budget = Bytes(1 << 20)});
  ParameterInit init(9);
  init.constant({2}, 1);
  ParameterInit::buffer({2}, 1);
  const Tensor second = init.normal({3}, 1.0);
  EXPECT_EQ(to_vector(second), draw_normal(9, 1, 3, 1.0));
  const Tensor third = init.uniform({3}, 1.0);
  EXPECT_EQ(to_vector(third), draw_uniform(9, 2, 3, 1.0));
  EXPECT_EQ(to_vector(init.constant({2}, 5)), (std::vector<float>{5, 5}));
}

TEST(ParameterInit, KaimingPreservesTheVarianceOfGradients) {
  Session session({.device = "cpu", .budget = Bytes(1 << 20)});
  ParameterInit init(9);
  const Tensor weight = init.kaiming_normal_fan_out({32, 3, 3, 16});
  EXPECT_EQ(to_vector(weight),
            draw_normal(9, 0, 32 * 3 * 3 * 16, std::sqrt(2.0 / (32 * 3 * 3))));
}

TEST(ParameterInit, DrawnValuesMayBeStoredInBfloat16) {
  Session session({.device = "cpu", .budget = Bytes(16 << 20)});
  ParameterInit init(9);
  init.store_as(DType::kBFloat16);
  const int64_t count = 3 << 20;  // several pieces
  const Tensor stored = init.normal({count}, 1.0);
  ASSERT_EQ(stored.dtype(), DType::kBFloat16);
  std::vector<BFloat16> values(static_cast<size_t>(count));
  ASSERT_TRUE(session.download(stored, values.data()));
  const std::vector<float> drawn = draw_normal(9, 0, count, 1.0);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(float{values[i]}, float{BFloat16(drawn[i])}) << i;
  }
  EXPECT_EQ(init.constant({2}, 5).dtype(), DType::kFloat32);
}

TEST(ParameterInit, WhatWillBeLoadedIsNotDrawnButKeepsItsNumber) {
  Session session({.device = "cpu", .budget = Bytes(1 << 20)});
  ParameterInit init(9);
  init.set_drawing(false);
  EXPECT_EQ(to_vector(init.normal({3}, 1.0)), (std::vector<float>{0, 0, 0}));
  init.set_drawing(true);
  EXPECT_EQ(to_vector(init.normal({3}, 1.0)), draw_normal(9, 1, 3, 1.0));
}

}  // namespace
}  // namespace tidemark
