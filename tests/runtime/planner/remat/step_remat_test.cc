// Recomputation for captured steps: schedules within the space, and none where there is none.
#include "runtime/planner/remat/step_remat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_bound.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::remat {
namespace {

using ::testing::IsEmpty;
using testing::units;

constexpr int64_t kEffort = 10'000;

TEST(StepRemat, RandomStepsAreValidAndRepeat) {
  int found = 0, again = 0;
  for (uint32_t seed = 1; seed <= tidemark::testing::cases(100u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTrace trace = testing::random_trace(random);
    const std::vector<Bytes> foreign(seed % 3, units(2));
    const Bytes least(bound_budget(problem_from_step(trace).problem));
    for (const int64_t more : {0, 2, 6}) {
      Bytes space = align_up(least + units(more));
      for (const Bytes size : foreign) space += size;
      const PlanLimits limits{.space = space};
      int64_t work = 0;
      const auto made = plan_step_remat(trace, limits, foreign, kEffort, &work);
      EXPECT_LE(work, 2 * kEffort + 1000) << "smaller budgets for the layout take half as much";
      if (!made) continue;
      ++found;
      ASSERT_THAT(schedule_violations(trace, limits, *made), IsEmpty());
      EXPECT_LE(made->peak, space);
      EXPECT_EQ(made->time, simulate(trace, limits, *made).time);
      EXPECT_EQ(plan_step_remat(trace, limits, foreign, kEffort), made);
      again += made->recomputed > Nanos(0);
    }
  }
  if (tidemark::testing::kSanitized) return;  // too few cases to cover everything
  EXPECT_GT(found, 100);
  EXPECT_GT(again, 20);
}

TEST(StepRemat, FindsNothingBelowTheBoundOrOnceStopped) {
  std::mt19937 random(1);
  const StepTrace trace = testing::random_trace(random);
  const Bytes least(bound_budget(problem_from_step(trace).problem));
  EXPECT_FALSE(plan_step_remat(trace, {.space = least - Bytes(1)}, {}, kEffort));
  const PlanLimits ample{.space = units(1000)};
  EXPECT_TRUE(plan_step_remat(trace, ample, {}, kEffort));
  const std::atomic<bool> stop{true};
  EXPECT_FALSE(plan_step_remat(trace, ample, {}, kEffort, nullptr, &stop));
}

}  // namespace
}  // namespace tidemark::planner::remat
