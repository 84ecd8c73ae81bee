#include "runtime/planner/releases/releases_in_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/planner/reordered_trace.h"
#include "runtime/schedule/schedule_validator.h"
#include "tests/support/sanitized.h"
#include "tests/support/schedule_with_order.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Orders = std::vector<std::vector<uint32_t>>;

// Gradients of two units each, and updates once all exist. Gradients cannot be recomputed, as
// the error that they come from is gone.
StepTrace updates_last(int layers) {
  TraceBuilder builder;
  std::vector<uint32_t> weights, gradients;
  for (int i = 0; i < layers; ++i) weights.push_back(builder.outside(1, true));
  uint32_t error = builder.upload(1);
  for (const uint32_t weight : weights) {
    gradients.push_back(builder.call({error, weight}, 1000, 2));
    error = builder.call({error, weight}, 1000, 1);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    builder.run({weights[i], gradients[i]}, 10);
    builder.writes(weights[i]);
  }
  return builder.trace();
}

// Short searches, and a long one where they say.
std::optional<OrderedReleases> plan(const StepTrace& trace, const PlanLimits& limits,
                                    const Orders& orders, int64_t effort = kThorough) {
  ReleaseProbes probes = probe_releases(trace, limits, {}, orders, effort);
  EXPECT_FALSE(probes.worth_searching.empty());
  auto found = plan_releases_in_order(trace, limits, {}, probes.worth_searching, effort);
  if (!found || !probes.best) return found ? found : probes.best;
  const bool longer_is_better = found->schedule.time <= probes.best->schedule.time;
  return longer_is_better ? found : probes.best;
}

TEST(ReleasesInOrder, ALowerPeakNeedsNoReleases) {
  const StepTrace trace = updates_last(8);
  const PlanLimits limits = copy_within(17, 3000);
  const auto in_program_order = plan_releases(trace, limits, {});
  const auto found = plan(trace, limits, orders_to_try(trace, limits, {}, {}));
  ASSERT_TRUE(in_program_order && found);
  EXPECT_EQ(found->order, updates_first(trace));
  EXPECT_EQ(order_of(found->schedule), found->order);
  EXPECT_EQ(schedule_violations(trace, limits, found->schedule), std::vector<std::string>());
  EXPECT_FALSE(releases(found->schedule));
  EXPECT_TRUE(releases(in_program_order->schedule));
  EXPECT_LT(found->schedule.time, in_program_order->schedule.time);
}

// The step is reordered and also releases.
TEST(ReleasesInOrder, BelowTheLowestPeakSomethingIsReleasedToo) {
  const StepTrace trace = updates_last(8);
  const PlanLimits limits = copy_within(10, 100);
  const auto found = plan(trace, limits, orders_to_try(trace, limits, {}, {}));
  ASSERT_TRUE(found);
  EXPECT_FALSE(in_program_order(found->schedule));
  EXPECT_TRUE(releases(found->schedule));
  EXPECT_EQ(schedule_violations(trace, limits, found->schedule), std::vector<std::string>());
}

TEST(ReleasesInOrder, OrdersThatLowerNoPeakAreNotTried) {
  const StepTrace trace = updates_last(8);
  std::vector<uint32_t> program(trace.ops.size());
  for (uint32_t k = 0; k < program.size(); ++k) program[k] = k;
  const PlanLimits limits = copy_within(17, 3000);
  EXPECT_EQ(orders_to_try(trace, limits, {}, program), Orders{updates_first(trace)});
  EXPECT_EQ(orders_to_try(trace, limits, {}, updates_first(trace)),
            Orders{updates_first(trace)});
  const StepTrace other = reordered(trace, updates_first(trace));
  EXPECT_EQ(orders_to_try(other, limits, {}, {}), Orders{});
}

TEST(ReleasesInOrder, InTheProgramsOrderItIsThePlannersOwn) {
  const StepTrace trace = updates_last(8);
  const PlanLimits limits = copy_within(17, 3000);
  int64_t work = 0, own = 0;
  const auto expected = plan_releases(trace, limits, {}, kQuick, &own);
  const auto found = plan_releases_in_order(trace, limits, {}, {{}}, kQuick, &work);
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(found->schedule, expected->schedule);
  EXPECT_TRUE(found->order.empty());
  EXPECT_EQ(work, own);
}

TEST(ReleasesInOrder, ProbesAreShortAndSayWhereALongSearchMayPay) {
  const StepTrace trace = updates_last(8);
  const PlanLimits limits = copy_within(10, 100);
  const ReleaseProbes probes =
      probe_releases(trace, limits, {}, orders_to_try(trace, limits, {}, {}));
  ASSERT_TRUE(probes.best);
  EXPECT_EQ(probes.best->order, updates_first(trace));
  EXPECT_EQ(probes.worth_searching, Orders{updates_first(trace)});
  // Without other orders, the program's is.
  const ReleaseProbes own = probe_releases(trace, limits, {}, {}, 8 * kQuick);
  const auto expected = plan_releases(trace, limits, {}, kQuick);
  ASSERT_TRUE(own.best && expected);
  EXPECT_EQ(own.best->schedule, expected->schedule);
  EXPECT_EQ(own.worth_searching, Orders{{}});
}

// Holds for any orders to search in, and the result is the same each time.
TEST(ReleasesInOrder, NeverSlowerThanInTheProgramsOrder) {
  std::mt19937 random(7);
  int found_some = 0, reordered_some = 0;
  for (int i = 0; i < (kSanitized ? 6 : 30); ++i) {
    const StepTrace trace = random_trace(random);
    const Bytes peak = program_order_peak(trace);
    const PlanLimits limits = copy_within(peak.count() * 8 / 10 / kRecordUnit.count(), 50);
    Orders orders{random_order(trace, random), updates_first(trace)};
    const auto plain = plan_releases(trace, limits, {}, kQuick);
    const auto found = plan(trace, limits, orders, kQuick);
    const auto again = plan(trace, limits, orders, kQuick);
    ASSERT_EQ(found.has_value(), again.has_value());
    if (!found) {
      EXPECT_FALSE(plain) << i;
      continue;
    }
    EXPECT_EQ(found->schedule, again->schedule);
    EXPECT_EQ(schedule_violations(trace, limits, found->schedule, 1),
              std::vector<std::string>());
    ++found_some;
    if (!found->order.empty()) ++reordered_some;
    if (plain && plain->schedule.shortfall == Bytes(0)) {
      EXPECT_LE(found->schedule.time, plain->schedule.time) << i;
    }
  }
  EXPECT_GT(found_some, kSanitized ? 2 : 10);
  EXPECT_GT(reordered_some, kSanitized ? 0 : 2);
}

TEST(ReleasesInOrder, EndsSoonOnceItIsStopped) {
  const StepTrace trace = updates_last(40);
  const PlanLimits limits = copy_within(40, 3000);
  const std::atomic<bool> stop{true};
  int64_t work = 0;
  const Orders orders = orders_to_try(trace, limits, {}, {});
  EXPECT_TRUE(probe_releases(trace, limits, {}, orders, kThorough, &work, &stop)
                  .worth_searching.empty());
  EXPECT_FALSE(plan_releases_in_order(trace, limits, {}, {{}}, kThorough, &work, &stop));
  EXPECT_LT(work, kQuick);
}

}  // namespace
}  // namespace tidemark::planner::testing
