#include "models/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tidemark {
namespace {

TEST(ScheduleTest, Constant) {
  const RateSchedule s{.rate = 2, .warmup_steps = 4};
  EXPECT_EQ(learning_rate(s, 0), 0);
  EXPECT_EQ(learning_rate(s, 1), 0.5);
  EXPECT_EQ(learning_rate(s, 4), 2);
  EXPECT_EQ(learning_rate(s, 1'000'000), 2);
  EXPECT_EQ(learning_rate({.rate = 2}, 0), 2);
}

// transformers.get_linear_schedule_with_warmup: max(0, (total - s) / (total - warmup)).
TEST(ScheduleTest, Linear) {
  const RateSchedule s{ScheduleKind::kLinear, 1e-4, 10, 110};
  EXPECT_DOUBLE_EQ(learning_rate(s, 5), 0.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 10), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 60), 0.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 110), 0);
  EXPECT_DOUBLE_EQ(learning_rate(s, 500), 0);
}

// transformers.get_cosine_schedule_with_warmup: (1 + cos(pi * done)) / 2.
TEST(ScheduleTest, CosineEndsAtItsFinalRate) {
  const RateSchedule s{ScheduleKind::kCosine, 1, 0, 100, 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(s, 0), 1);
  EXPECT_DOUBLE_EQ(learning_rate(s, 50), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(s, 25), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(learning_rate(s, 100), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(s, 101), 0.1);
}

TEST(ScheduleTest, MultiStepFallsAfterEachThird) {
  const RateSchedule s{ScheduleKind::kMultiStep, 1, 10, 100, 0};
  EXPECT_EQ(learning_rate(s, 5), 0.5);
  EXPECT_EQ(learning_rate(s, 39), 1);
  EXPECT_EQ(learning_rate(s, 40), 0.1);
  EXPECT_EQ(learning_rate(s, 69), 0.1);
  EXPECT_EQ(learning_rate(s, 70), 0.01);
  EXPECT_EQ(learning_rate(s, 1000), 0.01);
}

TEST(ScheduleTest, NothingToDecayOver) {
  EXPECT_EQ(learning_rate({ScheduleKind::kLinear, 1, 10, 10}, 9), 0.9);
  EXPECT_EQ(learning_rate({ScheduleKind::kLinear, 1, 10, 10}, 10), 1);
  EXPECT_EQ(learning_rate({ScheduleKind::kLinear, 1, 10, 10}, 11), 0);
}

TEST(ScheduleTest, Names) {
  EXPECT_EQ(parse_schedule("linear"), ScheduleKind::kLinear);
  EXPECT_EQ(parse_schedule("cosine"), ScheduleKind::kCosine);
  EXPECT_EQ(parse_schedule("multistep"), ScheduleKind::kMultiStep);
  EXPECT_EQ(parse_schedule("constant"), ScheduleKind::kConstant);
  EXPECT_EQ(parse_schedule("Linear"), std::nullopt);
}

}  // namespace
}  // namespace tidemark
