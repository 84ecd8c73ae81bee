#include "runtime/planner/bounds/any_order_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "runtime/planner/releases/release_planner.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/planner/bounds/away_step.h"
#include "tests/runtime/planner/bounds/repeated_step.h"
#include "tests/support/sanitized.h"
#include "tests/support/schedule_with_order.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner {
namespace {

using testing::added_in_order;
using testing::away;
using testing::copy_within;
using testing::evict_within;
using testing::kError;
using testing::TraceBuilder;

// What the bound adds to the calls, in nanoseconds.
double added_in_any_order(const TraceBuilder& builder, const PlanLimits& limits) {
  const StepTrace trace = builder.trace();
  return static_cast<double>((any_order_bound(trace, limits) - total_cost(trace)).count());
}

TEST(AnyOrderBound, IsTheCallsWhereAllFits) {
  EXPECT_EQ(added_in_any_order(away(), evict_within(12)), 0);
}

TEST(AnyOrderBound, AChainHasOneOrder) {
  EXPECT_NEAR(added_in_any_order(away(), evict_within(8)), 10'000'000, kError);
  // Out in 4 ms beside the second call, and back: 4 units beside nothing.
  const PlanLimits link = copy_within(8, 1'000'000);
  EXPECT_NEAR(added_in_any_order(away(), link), added_in_order(away(), link), kError);
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
  EXPECT_EQ(added_in_any_order(step, evict_within(8)), 0);
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
  EXPECT_NEAR(added_in_any_order(step, evict_within(8)), 10'000'000, kError);
  // The 4 ms out lie beside the second call, the 4 ms back beside a later one.
  EXPECT_NEAR(added_in_any_order(step, copy_within(8, 1'000'000)), 0, kError);
}

TEST(AnyOrderBound, ParametersComeBackInTheNextStep) {
  TraceBuilder step;
  const uint32_t w = step.outside(4, /*persistent=*/true);
  const uint32_t s0 = step.call({w}, 1'000'000, 4);
  step.run({s0}, 1'000'000, /*workspace=*/4);
  EXPECT_NEAR(added_in_any_order(step, evict_within(12)), 0, kError);
  // 4 units in 40 ms, and 2 ms of calls.
  EXPECT_NEAR(added_in_any_order(step, copy_within(8, 10'000'000)), 38'000'000, 2 * kError);
}

// What all of the space is needed for, then the update of a state of 4 units, which is away
// meanwhile: out in 20 ms after its write, in in 20 ms before it, both beside nothing. A last
// call may come before the update or after it.
TraceBuilder step_with_state(int64_t last_call) {
  TraceBuilder step;
  const uint32_t state = step.outside(4, /*persistent=*/true);
  const uint32_t s0 = step.call({}, 10'000'000, 8);
  const uint32_t s1 = step.call({s0}, 1, 0);
  step.run({state, s1}, 1);
  step.writes(state);
  if (last_call > 0) step.run({s1}, last_call);
  return step;
}
TEST(AnyOrderBound, StateIsCopiedOutAndIn) {
  const PlanLimits link = copy_within(8, 5'000'000);
  EXPECT_NEAR(added_in_any_order(step_with_state(0), link), 40'000'000, 2 * kError);
  EXPECT_NEAR(added_in_any_order(step_with_state(0), copy_within(12, 5'000'000)), 0, kError);
}

// Out beside the last call, which then is the update's successor; or in, but not both.
TEST(AnyOrderBound, StateIsCopiedBesideWhatFloats) {
  const PlanLimits link = copy_within(8, 5'000'000);
  EXPECT_NEAR(added_in_any_order(step_with_state(20'000'000), link), 20'000'000, 2 * kError);
  EXPECT_NEAR(added_in_any_order(step_with_state(5'000'000), link), 35'000'000, 2 * kError);
}

// Two calls need all of the space. Beside the second or the fourth call, the state of 4 units
// can come in, be written and go out again, in 40 ms. The update may run before both, or wait.
TEST(AnyOrderBound, AnUpdateRunsWhereTheLinkHasTime) {
  const auto added_with = [](int64_t second, int64_t fourth) {
    TraceBuilder step;
    const uint32_t state = step.outside(4, /*persistent=*/true);
    const uint32_t s0 = step.call({}, 1, 0);
    step.last().workspace = testing::units(8);
    const uint32_t s1 = step.call({s0}, second, 0);
    const uint32_t s2 = step.call({s1}, 1, 0);
    step.last().workspace = testing::units(8);
    step.run({s2}, fourth);
    step.run({state, s0}, 1);
    step.writes(state);
    return added_in_any_order(step, copy_within(8, 5'000'000));
  };
  EXPECT_NEAR(added_with(40'000'000, 0), 0, kError);
  EXPECT_NEAR(added_with(0, 40'000'000), 0, kError);
  // In a program both directions may be busy at once, before and after the update.
  EXPECT_NEAR(added_with(0, 0), 20'000'000, 2 * kError);
}

// What no step writes has a copy, and only comes back.
TEST(AnyOrderBound, WhatIsOnlyReadHasACopy) {
  TraceBuilder step;
  const uint32_t weights = step.outside(4, /*persistent=*/true);
  const uint32_t s0 = step.call({}, 10'000'000, 8);
  const uint32_t s1 = step.call({s0}, 1, 0);
  step.run({weights, s1}, 1);
  EXPECT_NEAR(added_in_any_order(step, copy_within(8, 5'000'000)), 20'000'000, 2 * kError);
}

// As TimeBound.WhatIsGoneIsNotCopied, in a chain.
TEST(AnyOrderBound, WhatIsGoneIsNotCopied) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 100'000'000, 4);
  const uint32_t s1 = step.call({s0}, 10'000'000, 4);
  uint32_t last = step.also(0);
  for (const auto& [cost, size] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 8}, {4'000'000'000, 5}, {4'000'000'000, 5}}) {
    step.call({last}, cost, size);
    last = step.also(0);
  }
  step.call({s1, last}, 1, 0);
  const StepTrace trace = step.trace();
  const TimeBoundOptions exact{.iterations = 20'000, .looked_at = {12}};
  const Nanos bound = any_order_bound(trace, copy_within(8, 1'000'000'000), exact);
  EXPECT_NEAR(static_cast<double>((bound - total_cost(trace)).count()), 106'975'000, 20'000);
}

// Needed again and again: computed once more after the second call, it stays beside the fifth,
// which leaves no space for what can be computed again at once.
TEST(AnyOrderBound, WhatRanAgainMayStay) {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  uint32_t last = step.also(0);
  const auto next = [&](const std::vector<uint32_t>& inputs, int64_t workspace) {
    last = step.call(inputs, 1, 0);
    step.last().workspace = testing::units(workspace);
  };
  next({last}, 8);
  next({last, s0}, 0);
  const uint32_t s1 = step.call({last}, 1, 4);
  last = step.also(0);
  next({last}, 4);
  next({last, s0, s1}, 0);
  const StepTrace trace = step.trace();
  const TimeBoundOptions exact{.iterations = 20'000, .looked_at = {12}};
  const Nanos bound = any_order_bound(trace, copy_within(8, 1'000'000'000), exact);
  EXPECT_NEAR(static_cast<double>((bound - total_cost(trace)).count()), 10'000'000, 300'000);
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
  EXPECT_EQ(added_in_any_order(unread, link), 0);
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

// Layers, some of which read an earlier one too; backward reads them again. The gradients of
// parameters may wait, and the updates, which also write an optimizer's state; in some networks
// they wait for the norm of all gradients.
StepTrace random_network(std::mt19937& random) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  TraceBuilder step;
  const uint32_t layers = 4 + pick(6), state = pick(4), most = pick(2) == 0 ? 2 : 6;
  const bool has_norm = pick(3) == 0;
  std::vector<uint32_t> weights, moments, x{step.upload(1 + pick(3))};
  if (pick(3) == 0) step.upload(8);  // of no use
  for (uint32_t i = 0; i < layers; ++i) {
    weights.push_back(step.outside(1 + pick(most), /*persistent=*/true));
  }
  for (uint32_t i = 0; i < layers && state > 0; ++i) {
    moments.push_back(step.outside(state, /*persistent=*/true));
  }
  for (uint32_t i = 0; i < layers; ++i) {
    std::vector<uint32_t> inputs{x[i], weights[i]};
    if (const uint32_t skip = pick(i + 1); pick(3) == 0 && skip != i) inputs.push_back(x[skip]);
    x.push_back(step.call(inputs, 1000 + pick(5000), 1 + pick(6)));
  }
  const auto update = [&](uint32_t i, std::vector<uint32_t> inputs) {
    if (state > 0) inputs.push_back(moments[i]);
    inputs.push_back(weights[i]);
    step.run(inputs, 100);
    step.writes(weights[i]);
    if (state > 0) step.writes(moments[i]);
  };
  uint32_t gradient = step.call({x.back()}, 1000, 1);
  std::vector<uint32_t> of_weights(layers);
  for (uint32_t i = layers; i-- > 0;) {
    of_weights[i] = step.call({gradient, x[i]}, 1000 + pick(3000), 1);
    gradient = step.call({gradient, weights[i], x[i + 1]}, 1000 + pick(5000), 1 + pick(3));
    if (!has_norm) update(i, {of_weights[i]});
  }
  if (has_norm) {
    const uint32_t norm = step.call(of_weights, 100, 0);
    for (uint32_t i = 0; i < layers; ++i) update(i, {of_weights[i], norm});
  }
  const uint32_t read = x[1 + pick(layers)];
  const StepTrace trace = step.trace();
  // The layer's call has run, and backward may still need its result.
  size_t after = 0;
  while (trace.ops[after].outputs != std::vector<uint32_t>{read}) ++after;
  return pick(2) == 0 ? trace : with_read(trace, read, after + 1);
}

// A chain of calls, some of which need much space or read state, and updates of that state,
// each from some call of the chain on.
StepTrace random_chain(std::mt19937& random) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  TraceBuilder step;
  std::vector<uint32_t> state, chain{step.call({}, 1, 0)}, kept;
  for (uint32_t i = 1 + pick(3); i > 0; --i) {
    state.push_back(step.outside(1 + pick(4), /*persistent=*/true));
  }
  for (uint32_t i = 3 + pick(5); i > 0; --i) {
    std::vector<uint32_t> inputs{chain.back()};
    if (pick(4) == 0) inputs.push_back(state[pick(static_cast<uint32_t>(state.size()))]);
    if (!kept.empty() && pick(3) == 0)
      inputs.push_back(kept[pick(static_cast<uint32_t>(kept.size()))]);
    chain.push_back(step.call(inputs, 1 + 1000 * pick(5), 0));
    step.last().workspace = testing::units(int64_t{4} * pick(3));
    if (pick(3) == 0) kept.push_back(step.also(1 + pick(4)));
  }
  for (const uint32_t s : state) {
    if (pick(8) == 0) continue;
    step.run({chain[pick(static_cast<uint32_t>(chain.size()))], s}, 1 + 500 * pick(2));
    step.writes(s);
  }
  return step.trace();
}

// How long the schedule takes, step after step if it can be told.
Nanos time_of(const StepTrace& trace, const PlanLimits& limits, const Schedule& schedule) {
  const bool is_alike = std::all_of(
      trace.storages.begin(), trace.storages.end(),
      [](const StepTrace::Storage& storage) { return storage.at_start == storage.at_end; });
  return is_alike ? testing::time_among_many(trace, limits, schedule)
                  : simulate(trace, limits, schedule).time;
}

// No schedule takes less, in whichever order.
TEST(AnyOrderBound, IsBelowEverySchedule) {
  std::mt19937 random(3);
  int made = 0, planned = 0, positive = 0, tight = 0;
  for (int seed = 0; seed < testing::cases(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const StepTrace trace = seed % 4 == 0   ? testing::random_trace(random)
                            : seed % 4 == 1 ? random_network(random)
                                            : random_chain(random);
    const int64_t peak = program_order_peak(trace).count() / testing::kRecordUnit.count();
    PlanLimits limits =
        copy_within(std::max<int64_t>(1, peak * (4 + random() % 6) / 10), 1 + random() % 3000);
    if (random() % 4 == 0) limits.tier_space = Bytes(0);
    const Nanos calls = total_cost(trace);
    const Nanos bound = any_order_bound(trace, limits, {.iterations = 500});
    Nanos least{0};
    for (int i = 0; i < 8; ++i) {
      const auto order = i == 0 ? updates_first(trace) : testing::random_order(trace, random);
      const auto found = testing::schedule_with(
          trace, order, testing::random_releases(limits, random), limits, {}, false);
      if (found) {
        ++made;
        EXPECT_LE(bound, time_of(trace, limits, *found));
      }
      if (i > 2) continue;
      const StepTrace step = reordered(trace, order);
      const auto plan = plan_releases(step, limits, {}, 50'000);
      if (!plan || plan->schedule.shortfall > Bytes(0)) continue;
      ++planned;
      const Nanos time = time_of(step, limits, plan->schedule);
      EXPECT_LE(bound, time);
      if (least == Nanos(0) || time < least) least = time;
    }
    if (bound == calls || least == Nanos(0)) continue;
    ++positive;
    tight += static_cast<double>((bound - calls).count()) >
             0.9 * static_cast<double>((least - calls).count());
  }
  EXPECT_GT(made, testing::cases(100));
  EXPECT_GT(planned, testing::cases(150));
  EXPECT_GT(positive, testing::cases(30));
  EXPECT_GT(tight, testing::cases(8));
}

}  // namespace
}  // namespace tidemark::planner
