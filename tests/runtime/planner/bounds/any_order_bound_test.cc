#include "runtime/planner/bounds/any_order_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/planner/releases/release_planner.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/planner/bounds/away_step.h"
#include "tests/support/sanitized.h"
#include "tests/support/schedule_with_order.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using testing::away;
using testing::copy_within;
using testing::evict_within;
using testing::TraceBuilder;

// What the bound adds to the calls, in nanoseconds.
double added(const TraceBuilder& builder, const PlanLimits& limits) {
  const StepTrace trace = builder.trace();
  return static_cast<double>((any_order_bound(trace, limits) - total_cost(trace)).count());
}
double added_in_order(const TraceBuilder& builder, const PlanLimits& limits) {
  const auto times = time_bound(builder.trace(), limits);
  return static_cast<double>((times->least - times->ample).count());
}
constexpr double kError = 10'000;  // of milliseconds

TEST(AnyOrderBound, IsTheCallsWhereAllFits) { EXPECT_EQ(added(away(), evict_within(12)), 0); }

TEST(AnyOrderBound, AChainHasOneOrder) {
  EXPECT_NEAR(added(away(), evict_within(8)), 10'000'000, kError);
  // Out in 4 ms beside the second call, and back: 4 units beside nothing.
  const PlanLimits link = copy_within(8, 1'000'000);
  EXPECT_NEAR(added(away(), link), added_in_order(away(), link), kError);
}

// The last call may as well run before the one that needs all of the space.
TEST(AnyOrderBound, AnotherOrderMayNeedLess) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  const uint32_t s1 = step.call({}, 10'000'000, 4);
  const uint32_t s2 = step.call({s1}, 10'000'000, 4);
  step.call({s2}, 1, 0);
  step.call({s0}, 1, 0);
  EXPECT_NEAR(added_in_order(step, evict_within(8)), 10'000'000, kError);
  EXPECT_EQ(added(step, evict_within(8)), 0);
}

// What a call that floats reads has to come back by the end.
TEST(AnyOrderBound, WhatFloatsComesBackByTheEnd) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  const uint32_t s1 = step.call({s0}, 10'000'000, 4);
  const uint32_t s2 = step.call({s1}, 10'000'000, 4);
  const uint32_t s3 = step.call({s2}, 10'000'000, 1);
  step.call({s3}, 10'000'000, 1);
  step.call({s0, s2}, 1, 0);  // before or after the call above
  EXPECT_NEAR(added(step, evict_within(8)), 10'000'000, kError);
  // The 4 ms out lie beside the second call, the 4 ms back beside a later one.
  EXPECT_NEAR(added(step, copy_within(8, 1'000'000)), 0, kError);
}

TEST(AnyOrderBound, ParametersComeBackInTheNextStep) {
  TraceBuilder step;
  const uint32_t w = step.outside(4, /*persistent=*/true);
  const uint32_t s0 = step.call({w}, 1'000'000, 4);
  step.run({s0}, 1'000'000, /*workspace=*/4);
  EXPECT_NEAR(added(step, evict_within(12)), 0, kError);
  // 4 units in 40 ms, and 2 ms of calls.
  EXPECT_NEAR(added(step, copy_within(8, 10'000'000)), 38'000'000, 2 * kError);
}

// `storage` is read by the host after this many operators, which stay before it.
StepTrace with_read(StepTrace trace, uint32_t storage, size_t after) {
  StepTrace::Op read{.kind = StepTrace::Kind::kRead, .name = "read"};
  read.inputs.push_back({storage, 0});
  std::vector<uint32_t>& dropped = trace.ops[after - 1].released;
  if (std::erase(dropped, storage) > 0) read.released.push_back(storage);
  trace.ops.insert(trace.ops.begin() + static_cast<int64_t>(after), read);
  return trace;
}

// An upload is on its way during what does not need it, past a read of something else.
TEST(AnyOrderBound, OnlyReadersWaitForAnUpload) {
  const PlanLimits link = copy_within(100, 25'000'000);
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 1'000'000);
  const uint32_t x = step.upload(4);
  const uint32_t s1 = step.call({s0}, 100'000'000);
  step.run({s1, x}, 1'000'000);
  const StepTrace trace = with_read(step.trace(), s0, 2);
  EXPECT_NEAR(static_cast<double>(any_order_bound(trace, link).count()), 102'000'000, kError);

  TraceBuilder unread;
  unread.run({}, 1'000'000);
  unread.keep(unread.upload(4));
  EXPECT_EQ(added(unread, link), 0);
}

// It may take the bytes of what was copied out beside a call that comes after the read.
TEST(AnyOrderBound, AnUploadExistsOnceItIsRead) {
  TraceBuilder step;
  const uint32_t y = step.call({}, 1'000'000, 4), z = step.call({}, 1'000'000, 4);
  const uint32_t x = step.upload(4);
  const uint32_t s = step.call({}, 100'000'000, 0);
  step.last().workspace = testing::units(4);
  const uint32_t t = step.call({x, s}, 100'000'000, 0);
  step.run({y, t}, 1'000'000);
  step.item(x).may_offload = step.item(y).may_evict = false;
  PlanLimits limits = copy_within(8, 1000);
  limits.out_bandwidth = testing::unit_in(25'000'000);
  const StepTrace trace = with_read(step.trace(), z, 3);
  EXPECT_NEAR(static_cast<double>(any_order_bound(trace, limits).count()), 203'000'000, kError);
}

// Layers, some of which read an earlier one too; backward reads them again, and the gradients
// of parameters and the updates may wait.
StepTrace random_network(std::mt19937& random) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  TraceBuilder step;
  const uint32_t layers = 4 + pick(6);
  std::vector<uint32_t> weights, x{step.upload(1 + pick(3))};
  if (pick(3) == 0) step.upload(8);  // of no use
  for (uint32_t i = 0; i < layers; ++i) {
    weights.push_back(step.outside(1 + pick(2), /*persistent=*/true));
  }
  for (uint32_t i = 0; i < layers; ++i) {
    std::vector<uint32_t> inputs{x[i], weights[i]};
    if (const uint32_t skip = pick(i + 1); pick(3) == 0 && skip != i) inputs.push_back(x[skip]);
    x.push_back(step.call(inputs, 1000 + pick(5000), 1 + pick(6)));
  }
  uint32_t gradient = step.call({x.back()}, 1000, 1);
  for (uint32_t i = layers; i-- > 0;) {
    const uint32_t of_weight = step.call({gradient, x[i]}, 1000 + pick(3000), 1);
    gradient = step.call({gradient, weights[i], x[i + 1]}, 1000 + pick(5000), 1 + pick(3));
    step.run({weights[i], of_weight}, 100);
    step.writes(weights[i]);
  }
  const uint32_t read = x[1 + pick(layers)];
  const StepTrace trace = step.trace();
  // The layer's call has run, and backward may still need its result.
  size_t after = 0;
  while (trace.ops[after].outputs != std::vector<uint32_t>{read}) ++after;
  return pick(2) == 0 ? trace : with_read(trace, read, after + 1);
}

// No schedule takes less, in whichever order.
TEST(AnyOrderBound, IsBelowEverySchedule) {
  std::mt19937 random(3);
  int made = 0, positive = 0, tight = 0;
  for (int seed = 0; seed < testing::cases(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const StepTrace trace =
        seed % 2 == 0 ? testing::random_trace(random) : random_network(random);
    const int64_t peak = program_order_peak(trace).count() / testing::kRecordUnit.count();
    PlanLimits limits =
        copy_within(std::max<int64_t>(1, peak * (4 + random() % 6) / 10), 1 + random() % 3000);
    if (random() % 3 == 0) limits.tier_space = Bytes(0);
    const Nanos bound = any_order_bound(trace, limits, {.iterations = 500});
    const auto planned = plan_releases(trace, limits, {}, 50'000);
    if (planned && planned->schedule.shortfall == Bytes(0)) {
      EXPECT_LE(bound, planned->schedule.time);
      positive += bound > total_cost(trace);
      tight += static_cast<double>((bound - total_cost(trace)).count()) >
               0.5 * static_cast<double>((planned->schedule.time - total_cost(trace)).count());
    }
    for (int i = 0; i < 8; ++i) {
      const auto order = testing::random_order(trace, random);
      const auto found = testing::schedule_with(
          trace, order, testing::random_releases(limits, random), limits, {}, false);
      if (!found) continue;
      ++made;
      EXPECT_LE(bound, simulate(trace, limits, *found).time);
    }
  }
  EXPECT_GT(made, testing::cases(100));
  EXPECT_GT(positive, testing::cases(30));
  EXPECT_GT(tight, testing::cases(15));
}

}  // namespace
}  // namespace tidemark::planner
