// Whole schedules with releases: valid ones, and none where nothing fits.
#include "runtime/planner/releases/release_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "runtime/planner/releases/release_draft.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/runtime/planner/releases/tower.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

// A little more than this many units, as plans leave some space free for blocks that do not lie
// close together.
PlanLimits just_above(int64_t room) {
  return {.space = align_up(Bytes(units(room).count() * 21 / 20))};
}

// Counts cases, so that a test can check that it covered some.
struct PlansSeen {
  int placed = 0, moving = 0, unplaced = 0, none = 0, releasing = 0;
};

bool moves(const Schedule& schedule) {
  return std::any_of(schedule.code.begin(), schedule.code.end(), [](const auto& instruction) {
    return instruction.what == Schedule::Do::kMove;
  });
}

// Checks that the schedule is valid, also for the step in program order.
std::optional<ReleaseSchedule> checked(const StepTrace& trace, const PlanLimits& limits,
                                       const std::vector<Bytes>& foreign = {}) {
  auto plan = plan_releases(trace, limits, foreign);
  if (!plan) return plan;
  EXPECT_EQ(plan->schedule.foreign, foreign);
  EXPECT_EQ(schedule_violations(trace, limits, plan->schedule, 3), std::vector<std::string>());
  const Bytes lacks = plan->schedule.shortfall, most(limits.space.count() / 10);
  if (lacks <= most) return plan;
  EXPECT_LE(max_resident(plan->schedule), limits.space + most);
  EXPECT_LE(20 * (limits.out_time(lacks) + limits.in_time(lacks)).count(),
            plan->schedule.time.count())
      << "more than the policy is to release";
  return plan;
}

std::string actions_of(const std::vector<PlannedRelease>& releases) {
  std::string text;
  for (const PlannedRelease& release : releases) {
    text += release.action == Release::kOffload ? "copy " : "evict ";
    text += std::to_string(release.item) + ", ";
  }
  return text;
}

TEST(ReleasePlanner, PlacesAStepThatFits) {
  const auto plan = checked(tower(1, 1, 1).trace(), just_above(3));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->schedule.placed);
  EXPECT_TRUE(plan->releases.empty());
  EXPECT_EQ(plan->schedule.time, Nanos(30'003));
  EXPECT_EQ(plan->schedule.blocks.size(), 3U);
}

TEST(ReleasePlanner, ReleasesWhatDoesNotFit) {
  const auto plan = checked(tower(300, 100, 200).trace(), just_above(2));
  ASSERT_TRUE(plan && plan->schedule.placed);
  EXPECT_EQ(actions_of(plan->releases), "evict 1, ");
  EXPECT_EQ(plan->schedule.recomputed, Nanos(100));
}

TEST(ReleasePlanner, IsNoneWhereNothingFits) {
  const StepTrace step = tower(1, 1, 1).trace();
  EXPECT_TRUE(checked(step, evict_within(1)));
  EXPECT_FALSE(checked(step, {.space = Bytes(units(1).count() / 2)}));
  EXPECT_FALSE(checked(step, evict_within(1), {Bytes(units(1).count() / 2)}));
  EXPECT_FALSE(checked(tower(1, 1, 1, 4).trace(), evict_within(3))) << "not even one of them";
  TraceBuilder kept = tower(1, 1, 1);
  for (const uint32_t item : {0U, 1U, 2U}) kept.item(item).may_evict = false;
  EXPECT_FALSE(checked(kept.trace(), copy_within(2, 1, /*tier=*/0)));
  EXPECT_TRUE(checked(kept.trace(), copy_within(2, 1)));
  EXPECT_FALSE(checked(tower(1, 1, 1).trace(), evict_within(3), {units(3)}));
  EXPECT_FALSE(checked(tower(1, 1, 1).trace(), evict_within(3), {units(4)}));
}

// The policy releases the shortfall at run time: here, two units for each of twenty calls.
TEST(ReleasePlanner, MayBeShortOfWhatTheLinkMovesInLittleTime) {
  TraceBuilder record;
  const uint32_t a = record.outside(98, /*persistent=*/true);
  for (int i = 0; i < 20; ++i) record.run({}, 1000, /*workspace=*/4);
  record.item(a).may_evict = record.item(a).may_offload = false;
  const auto plan = checked(record.trace(), copy_within(100, 10));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->schedule.shortfall, units(40)) << "more than a tenth of the room";
  EXPECT_FALSE(plan->schedule.placed);
  EXPECT_FALSE(checked(record.trace(), copy_within(100, 20))) << "1600 of 20000 ns";
}

// Foreign storages keep their places all the time; the step has the rest.
TEST(ReleasePlanner, LeavesSpaceForForeign) {
  const StepTrace step = tower(300, 100, 200).trace();
  const auto plan = checked(step, just_above(6), {units(1), units(2)});
  ASSERT_TRUE(plan && plan->schedule.placed);
  EXPECT_TRUE(plan->releases.empty());
  const auto tight = checked(step, just_above(5), {units(1), units(2)});
  ASSERT_TRUE(tight && tight->schedule.placed);
  EXPECT_EQ(actions_of(tight->releases), "evict 1, ");
}

// A share of the step's peak without releases.
Bytes part_of_unmanaged(const StepTrace& step, int64_t percent) {
  const Bytes all = draft_releases(StepTable(step), evict_within(1)).unmanaged;
  return align_down(Bytes(all.count() * percent / 100));
}

TEST(ReleasePlanner, OfRandomStepsIsLaidOut) {
  PlansSeen seen;
  for (uint32_t seed = 1; seed <= cases(150u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTrace step = random_trace(random);
    PlanLimits limits = copy_within(1, 1 + static_cast<int64_t>(random() % 500),
                                    static_cast<int64_t>(random() % 2) * 1000);
    const auto percent = 60 + static_cast<int64_t>(random() % 80);
    limits.space = part_of_unmanaged(step, percent);
    std::vector<Bytes> foreign;
    for (uint32_t s = random() % 3; s > 0; --s) {
      foreign.push_back(units(1 + static_cast<int64_t>(random() % 2)));
    }
    const auto plan = checked(step, limits, foreign);
    if (!plan) {
      ++seen.none;
      continue;
    }
    ++(plan->schedule.placed ? seen.placed : seen.unplaced);
    seen.moving += moves(plan->schedule);
    seen.releasing += !plan->releases.empty();
  }
  EXPECT_GE(seen.placed, kSanitized ? 9 : 80);
  EXPECT_GE(seen.moving, cases(10));
  EXPECT_GE(seen.releasing, kSanitized ? 4 : 40);
}

// Everything has to stay, and fills the space to the last byte again and again. Two items end
// at a time, and the next one is sometimes as large as both: they have to lie side by side.
StepTrace crowded_step(int64_t room, std::mt19937& random) {
  TraceBuilder record;
  std::vector<uint32_t> live;
  int64_t used = 0, least = 1;
  for (int k = 0; k < 30; ++k) {
    const int64_t size =
        std::min(room - used, std::max(least, 1 + static_cast<int64_t>(random() % 3)));
    live.push_back(record.call({}, 100, size));
    record.item(live.back()).may_evict = record.item(live.back()).may_offload = false;
    used += size;
    least = 1;
    if (used < room) continue;
    std::shuffle(live.begin(), live.end(), random);
    for (int gone = 0; gone < 2 && !live.empty(); ++gone) {
      record.run({live.back()});
      used -= record.item(live.back()).size.count() / kRecordUnit.count();
      live.pop_back();
    }
    if (random() % 2 == 0) least = room - used;
  }
  record.run(live);
  return record.trace();
}

TEST(ReleasePlanner, MovesWhatIsInTheWay) {
  constexpr int64_t kRoom = 12;
  PlansSeen seen;
  for (uint32_t seed = 1; seed <= cases(100u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const StepTrace step = crowded_step(kRoom, random);
    const auto plan = checked(step, evict_within(kRoom + 1), {units(1)});
    ASSERT_TRUE(plan && plan->schedule.placed);
    EXPECT_TRUE(plan->releases.empty());
    EXPECT_EQ(plan->schedule.time, StepTable(step).duration);
    EXPECT_GE(plan->schedule.blocks.size(), step.storages.size());
    seen.moving += moves(plan->schedule);
    EXPECT_FALSE(checked(step, evict_within(kRoom - 1), {units(1)}));
  }
  EXPECT_GT(seen.moving, cases(20));
  EXPECT_LT(seen.moving, 100) << "some lie well without";
}

// If moves take no time, a wait is never worth it, and an item being copied does not move.
// Otherwise it may move after a wait: as many layouts succeed or more, and the time shows the
// moves and the waits.
TEST(ReleasePlanner, WaitsForCopiesOfWhatIsInTheWay) {
  int laid_out = 0, without_waits = 0, waiting = 0;
  for (uint32_t seed = 1; seed <= cases(150u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    StepTrace step = random_trace(random);
    // In place, hardly anything is in the way.
    for (StepTrace::Op& op : step.ops) op.may_overwrite.clear();
    PlanLimits limits = copy_within(1, 300);
    limits.space = part_of_unmanaged(step, 70);
    if (const auto plan = checked(step, limits)) without_waits += plan->schedule.placed;
    limits.move_bandwidth = unit_in(5);
    const auto plan = checked(step, limits);
    if (!plan || !plan->schedule.placed) continue;
    ++laid_out;
    const ScheduleCost cost = simulate(step, limits, plan->schedule);
    EXPECT_EQ(plan->schedule.time,
              cost.time + planner::time_between_steps(plan->schedule, limits));
    waiting += cost.waited > Nanos(0);
  }
  EXPECT_GE(laid_out, without_waits);
  EXPECT_GT(waiting, cases(20));
}

// Some of the shortfall has to be released by price, so no place is certain.
TEST(ReleasePlanner, HasNoPlacesWhereALittleIsShort) {
  const auto of = [](int items) {
    TraceBuilder record;
    std::vector<uint32_t> made;
    for (int i = 0; i < items; ++i) {
      made.push_back(record.call({}));
      record.item(made.back()).may_evict = record.item(made.back()).may_offload = false;
    }
    record.run(made);
    return record.trace();
  };
  const auto plan = checked(of(11), evict_within(11), {units(1)});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->schedule.placed);
  EXPECT_FALSE(moves(plan->schedule));
  EXPECT_EQ(plan->schedule.shortfall, units(1));
  EXPECT_FALSE(checked(of(12), evict_within(11), {units(1)}));
  EXPECT_TRUE(checked(of(10), evict_within(11), {units(1)})->schedule.placed);
}

}  // namespace
}  // namespace tidemark::planner::testing
