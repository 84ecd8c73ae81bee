#include "runtime/planner/bounds/time_bound.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/planner/bounds/any_order_bound.h"
#include "runtime/planner/releases/release_planner.h"
#include "tests/runtime/planner/bounds/away_step.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using testing::added_in_order;
using testing::away;
using testing::copy_within;
using testing::evict_within;
using testing::kError;
using testing::TraceBuilder;

TEST(TimeBound, IsTheStepWhereAllFits) {
  EXPECT_NEAR(added_in_order(away(), evict_within(12)), 0, kError);
}

TEST(TimeBound, NoneWhereACallDoesNotFit) {
  EXPECT_EQ(added_in_order(away(), evict_within(7)), -1);
}

TEST(TimeBound, CountsARecomputation) {
  EXPECT_NEAR(added_in_order(away(), evict_within(8)), 10'000'000, kError);
  EXPECT_NEAR(added_in_order(away(), evict_within(10)), 5'000'000,
              kError);  // half of s0 would do
}

TEST(TimeBound, CopiesRunBesideCalls) {
  EXPECT_NEAR(added_in_order(away(), copy_within(8, 1'000'000)), 0, kError);
}

// A share f of s0 is computed again, the rest comes back from the third call on:
// 4 (1 - f) units = 0.2 per ms * (10 + 10 f) ms.
TEST(TimeBound, ASlowLinkBesideRecomputation) {
  EXPECT_NEAR(added_in_order(away(), copy_within(8, 5'000'000)), 10e6 / 3, 20'000);
}

TEST(TimeBound, CountsWhatARecomputationReads) {
  TraceBuilder chain;
  const uint32_t s0 = chain.call({}, 7'000'000, 1);
  const uint32_t s1 = chain.call({s0}, 10'000'000, 4);
  chain.call({}, 5'000'000, 8);
  chain.call({s1}, 1, 0);
  EXPECT_NEAR(added_in_order(chain, evict_within(8)), 17'000'000, kError);
  EXPECT_NEAR(added_in_order(chain, evict_within(9)), 10'000'000, kError);  // s0 may stay
}

// s1 is away while the third call runs. The last call would need it back, at 10 ms; its variant
// reads s0, which stays, and takes 4 ms longer. Neither is counted: a bound takes of a call
// what all of its variants need, and the shortest time.
TEST(TimeBound, CountsOfVariantsWhatAllNeed) {
  TraceBuilder chain;
  const uint32_t s0 = chain.call({}, 7'000'000, 1);
  const uint32_t s1 = chain.call({s0}, 10'000'000, 4);
  chain.call({}, 5'000'000, 8);
  chain.call({s1, s0}, 2'000'000, 0);
  EXPECT_NEAR(added_in_order(chain, evict_within(9)), 10'000'000, kError);
  StepTrace trace = chain.trace();
  trace.ops[3].variants = {{.name = "from_s0", .inputs = {{s0}}, .cost = Nanos(6'000'000)}};
  ASSERT_TRUE(trace_violations(trace).empty());
  const auto times = time_bound(trace, evict_within(9), {});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->ample, Nanos(24'000'000));
  EXPECT_NEAR(static_cast<double>(times->least.count()), 24e6, kError);
  EXPECT_NEAR(static_cast<double>(any_order_bound(trace, evict_within(9)).count()), 24e6,
              kError);
  // A quicker variant: the step may take less than the program's calls.
  trace.ops[3].variants[0].cost = Nanos(500'000);
  const auto less = time_bound(trace, evict_within(9), {});
  ASSERT_TRUE(less);
  EXPECT_EQ(less->ample, Nanos(24'000'000));
  EXPECT_NEAR(static_cast<double>(less->least.count()), 22.5e6, kError);
}

// What the recomputation reads is gone too, and what that was made from.
TEST(TimeBound, CountsAllThatLeadsToARecomputation) {
  TraceBuilder chain;
  const uint32_t s0 = chain.call({}, 7'000'000, 1);
  const uint32_t s1 = chain.call({s0}, 5'000'000, 1);
  const uint32_t s2 = chain.call({s1}, 10'000'000, 4);
  chain.call({}, 5'000'000, 8);
  chain.call({s2}, 1, 0);
  EXPECT_NEAR(added_in_order(chain, evict_within(8)), 22'000'000, kError);
}

// When the third call starts there is room for half of s0; when the fourth does, for half of s0
// and of s1. Half a run of s1 after each would need only that half; but its first run needs all
// of s0, so half of that is computed again.
TEST(TimeBound, ARunNeedsAllOfWhatItReads) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 100'000'000, 2);
  const uint32_t s1 = step.call({s0}, 10'000'000, 6);
  step.call({}, 5'000'000, 7);
  step.call({}, 5'000'000, 4);
  step.call({s1}, 1, 0);
  const TimeBoundOptions exact{.iterations = 20'000, .looked_at = {12}};
  EXPECT_NEAR(added_in_order(step, evict_within(8), exact), 60'000'000, kError);
}

// The third call needs all of the space, and the link has carried 0.11 of 4 units by then. In
// the long calls it could carry all of s0 out and in again; but the rest is gone.
TEST(TimeBound, WhatIsGoneIsNotCopied) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 100'000'000, 4);
  const uint32_t s1 = step.call({s0}, 10'000'000, 4);
  step.call({}, 1, 8);
  step.call({}, 4'000'000'000, 5);
  step.call({}, 4'000'000'000, 5);
  step.call({s1}, 1, 0);
  const TimeBoundOptions exact{.iterations = 20'000, .looked_at = {12}};
  EXPECT_NEAR(added_in_order(step, copy_within(8, 1'000'000'000), exact), 106'975'000, 10'000);
}

// 6 units cannot be out when the program uploads 5, but when they are wanted, 100 ms later:
// until then the upload waits, not compute.
TEST(TimeBound, AnUploadMayComeLate) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 100'000, 6);
  step.item(s0).may_evict = false;
  const uint32_t data = step.upload(5);
  step.call({}, 100'000'000, 1);
  step.call({data}, 1'000'000, 1);
  step.call({}, 100'000'000, 1);
  step.run({s0}, 1'000'000);
  EXPECT_NEAR(added_in_order(step, copy_within(10, 1'000'000), {.looked_at = {2}}), 0, kError);
}

TEST(TimeBound, PaysACallOnceForAllItsOutputs) {
  TraceBuilder pair;
  const uint32_t a = pair.call({}, 10'000'000, 2);
  const uint32_t b = pair.also(2);
  pair.call({}, 5'000'000, 8);
  pair.call({a, b}, 1, 0);
  EXPECT_NEAR(added_in_order(pair, evict_within(8)), 10'000'000, kError);
}

// Written in place, so it cannot be computed again: 4 units leave in 20 ms, 2 of them beside
// the update that writes them (a relaxation), and come back in 20, 2 of them beside the third
// call.
TEST(TimeBound, WhatWasWrittenInPlaceIsCopied) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  step.update(s0, 10'000'000);
  step.call({}, 10'000'000, 8);
  step.call({s0}, 1, 0);
  EXPECT_NEAR(added_in_order(step, copy_within(8, 5'000'000)), 20'000'000, 20'000);
}

// The recomputation of s0 lies in the wait for the upload, which only the last call reads.
TEST(TimeBound, AWaitForAnUploadHidesARecomputation) {
  TraceBuilder step;
  const uint32_t x = step.upload(4);
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  step.run({}, 10'000'000, /*workspace=*/5);
  step.call({x, s0}, 1'000'000, 1);
  PlanLimits limits = evict_within(9);
  limits.in_bandwidth = limits.out_bandwidth = testing::unit_in(10'000'000);
  const auto times = time_bound(step.trace(), limits);
  ASSERT_TRUE(times);
  EXPECT_LE(times->least, Nanos(41'000'000));
  EXPECT_NEAR(static_cast<double>(times->ample.count()), 41e6, 10'000);
}

// Nothing waits for what nobody reads.
TEST(TimeBound, AnUploadWithoutAReaderTakesNoTime) {
  TraceBuilder step;
  step.upload(4);
  step.call({}, 10'000'000, 1);
  PlanLimits limits = evict_within(9);
  limits.in_bandwidth = testing::unit_in(10'000'000);
  const auto times = time_bound(step.trace(), limits);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->ample, Nanos(10'000'000));
}

// The state of an optimizer is away while the first two calls run: 4 units leave in 20 ms from
// the update on, which takes 10, and come back in 20 ms from the second call on, as long.
TEST(TimeBound, StateIsAwayOverTheEnd) {
  TraceBuilder step;
  const uint32_t state = step.outside(4, /*persistent=*/true);
  const uint32_t s0 = step.call({}, 10'000'000, 8);
  step.run({s0}, 10'000'000);
  step.update(state, 10'000'000);
  EXPECT_NEAR(added_in_order(step, copy_within(8, 5'000'000)), 20'000'000, 20'000);
  EXPECT_NEAR(added_in_order(step, copy_within(12, 5'000'000)), 0, kError);
}

// Before the update of state nothing of it is copied out: 10 of 20 ms lie beside that update,
// whatever else was written before.
TEST(TimeBound, LooksWhereStateIsWrittenFirst) {
  TraceBuilder step;
  const uint32_t state = step.outside(4, /*persistent=*/true);
  const uint32_t statistics = step.outside(1, /*persistent=*/true);
  step.item(statistics).size = Bytes(512);
  const uint32_t s0 = step.call({statistics}, 10'000'000, 8);
  step.writes(statistics);
  step.run({s0}, 10'000'000);
  step.update(state, 10'000'000);
  PlanLimits limits = copy_within(8, 5'000'000);
  limits.space += Bytes(512);
  EXPECT_NEAR(added_in_order(step, limits, {.looked_at = {1}}), 10'000'000, 20'000);
}

// What no step writes has a copy, and only comes back.
TEST(TimeBound, WhatIsOnlyReadHasACopy) {
  TraceBuilder step;
  const uint32_t weights = step.outside(4, /*persistent=*/true);
  const uint32_t s0 = step.call({}, 10'000'000, 8);
  step.run({s0}, 10'000'000);
  step.run({weights}, 10'000'000);
  EXPECT_NEAR(added_in_order(step, copy_within(8, 5'000'000)), 10'000'000, 20'000);
}

// No schedule found takes less, and some take little more.
TEST(TimeBound, IsBelowEverySchedule) {
  std::mt19937 random(1);
  int planned = 0, released = 0, tight = 0;
  for (int seed = 0; seed < testing::cases(150); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const StepTrace trace = testing::random_trace(random);
    const int64_t peak = program_order_peak(trace).count() / testing::kRecordUnit.count();
    PlanLimits limits =
        copy_within(std::max<int64_t>(1, peak * (4 + random() % 6) / 10), 1 + random() % 300);
    if (random() % 3 == 0) limits.tier_space = Bytes(0);
    const auto found = plan_releases(trace, limits, {}, 50'000);
    if (!found || found->schedule.shortfall > Bytes(0)) continue;
    ++planned;
    const auto times = time_bound(trace, limits, {.iterations = 500});
    ASSERT_TRUE(times);
    EXPECT_LE(times->least, found->schedule.time);
    if (found->schedule.time == times->ample) continue;
    ++released;
    tight += static_cast<double>(times->least.count()) >
             0.9 * static_cast<double>(found->schedule.time.count());
  }
  EXPECT_GE(planned, testing::kSanitized ? 6 : 60);
  EXPECT_GE(released, testing::cases(20));
  EXPECT_GE(tight, testing::cases(8));
}

}  // namespace
}  // namespace tidemark::planner
