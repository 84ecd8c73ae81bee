// All phases in which a step is planned, on random steps.
#include "runtime/planner/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/planner/reordered_trace.h"
#include "runtime/schedule/schedule_validator.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int64_t kEffort = 200'000;

// What storages take that live from the step's beginning to its end.
Bytes residents(const StepTrace& trace) {
  Bytes sum{0};
  for (const StepTrace::Storage& storage : trace.storages) {
    if (storage.at_start && storage.at_end) sum += align_up(storage.size);
  }
  return sum;
}

std::vector<std::string> faults(const StepTrace& trace, const PlanLimits& limits,
                                const Schedule& schedule) {
  return schedule_violations(trace, limits, schedule, 1);
}

TEST(Pipeline, WhatFitsInSomeOrderReleasesNothing) {
  std::mt19937 random(3);
  int plannable = 0, released = 0;
  for (int i = 0; i < cases(40); ++i) {
    const StepTrace trace = random_trace(random);
    if (!why_not_plannable(trace).empty()) continue;
    ++plannable;
    const Schedule least =
        plan_order(trace, {.limits = {.seconds = 1e9, .nodes = kOrderNodes}});
    PlanLimits limits = copy_within(0, 1000);
    limits.space = residents(trace) + least.peak;
    const auto found = plan_step_within(trace, limits, {}, kEffort);
    ASSERT_TRUE(found) << i;
    EXPECT_FALSE(releases(*found)) << i;
    EXPECT_LE(residents(trace) + found->peak, limits.space) << i;
    EXPECT_EQ(faults(trace, limits, *found), std::vector<std::string>()) << i;
    limits.space -= kAlignment;
    // Addresses of all storages together may still fit.
    const auto below = plan_step_within(trace, limits, {}, kEffort);
    released += below && releases(*below);
  }
  if (kSanitized) return;  // too few cases to cover everything
  EXPECT_GT(plannable, 0);
  EXPECT_GT(released, 0);
}

// With a tier and without, the schedule is valid, the quickest of the phases, the same each
// time, and takes no less than the bounds.
TEST(Pipeline, IsTheQuickestOfThePhases) {
  std::mt19937 random(5);
  int found_some = 0, again = 0;
  for (int i = 0; i < cases(48); ++i) {
    const StepTrace trace = random_trace(random);
    PlanLimits limits = copy_within(0, i % 2 == 0 ? 1000 : 0);
    limits.space = align_down(Bytes(program_order_peak(trace).count() * 7 / 10));
    int64_t work = 0;
    const auto found = plan_step_within(trace, limits, {}, kEffort, &work);
    EXPECT_GT(work, 0) << i;
    if (!found) continue;
    ++found_some;
    EXPECT_EQ(faults(trace, limits, *found), std::vector<std::string>()) << i;
    EXPECT_EQ(plan_step_within(trace, limits, {}, kEffort), found) << i;
    if (!releases(*found)) continue;
    std::vector<uint32_t> planned;
    if (why_not_plannable(trace).empty()) {
      planned = order_of(plan_order(
          trace, {.limits = {.seconds = 1e9, .nodes = kOrderNodes}, .space = limits.space}));
    }
    const ReleaseProbes first = plan_first_releases(trace, limits, {}, planned, true, kEffort);
    const auto last = plan_long(trace, limits, {}, first.worth_searching, kEffort);
    Nanos least{std::numeric_limits<int64_t>::max()};
    if (first.best) least = time_of_releases(first.best->schedule, limits);
    if (last) least = std::min(least, time_of_releases(*last, limits));
    EXPECT_EQ(time_of_releases(*found, limits), least) << i;
    again += found->recomputed > Nanos(0);
  }
  if (kSanitized) return;  // too few cases to cover everything
  EXPECT_GT(found_some, 20);
  EXPECT_GT(again, 8);
}

TEST(Pipeline, BoundsAreInTheirOrder) {
  std::mt19937 random(7);
  int bounded = 0;
  for (int i = 0; i < cases(24); ++i) {
    const StepTrace trace = random_trace(random);
    PlanLimits limits = copy_within(0, 1000);
    limits.space = align_down(Bytes(program_order_peak(trace).count() * 7 / 10));
    auto found = plan_step_within(trace, limits, {}, kEffort);
    if (!found) continue;
    const auto bounds = bound_time(*found, trace, limits);
    ASSERT_TRUE(bounds) << i;
    ++bounded;
    EXPECT_LE(bounds->any_order, bounds->least) << i;
    EXPECT_LE(bounds->ample, bounds->least) << i;
    bounds->write_to(*found);
    EXPECT_EQ(found->ample_time, bounds->ample) << i;
    EXPECT_EQ(found->time_bound, bounds->least) << i;
    EXPECT_EQ(found->any_order_bound, bounds->any_order) << i;
  }
  EXPECT_GT(bounded, kSanitized ? 0 : 8);
}

TEST(Pipeline, TheEffortGrowsWithTheStep) {
  EXPECT_EQ(effort_for(Nanos(0)), kQuick);
  EXPECT_EQ(effort_for(Nanos(100'000'000)), 20'000'000);
  EXPECT_EQ(effort_for(Nanos(10'000'000'000)), kThorough);
}

}  // namespace
}  // namespace tidemark::planner::testing
