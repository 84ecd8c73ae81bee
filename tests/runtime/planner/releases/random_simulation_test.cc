// Random steps with random releases: the written schedule is valid, and takes what the
// simulation says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/planner/baselines/parallel_safe.h"
#include "runtime/planner/releases/kept_sources.h"
#include "runtime/planner/releases/step_simulator.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"
#include "tests/support/sanitized.h"
#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

using Releases = std::vector<PlannedRelease>;

PlanLimits random_limits(std::mt19937& random) {
  const auto space = 4 + static_cast<int64_t>(random() % 60);
  return copy_within(space, 1 + static_cast<int64_t>(random() % 3000));
}

Releases random_releases(const StepTable& step, std::mt19937& random) {
  Releases releases;
  const auto add = [&](uint32_t i, uint32_t from, uint32_t to) {
    const StepTable::Item& item = step.items[i];
    const bool wraps = to <= from;
    const bool stays_away = to == step.calls.size();
    const bool may_evict =
        item.may_evict && item.producer != StepTable::kNone && !wraps && !stays_away;
    if (random() % 3 == 0 || (!may_evict && !item.may_offload)) return;
    if (may_evict && (!item.may_offload || random() % 2 == 0)) {
      releases.push_back({i, from, to, Release::kEvict, 0});
      return;
    }
    const uint32_t first = wraps ? 0 : from;
    if (to == first) return;
    const auto back = first + static_cast<uint32_t>(random() % (to - first));
    releases.push_back({i, from, to, Release::kOffload, back});
    releases.back().leaves_before_end = wraps && item.lives_through() && random() % 2 == 0;
  };
  for (uint32_t i = 0; i < step.items.size(); ++i) {
    const std::vector<uint32_t>& uses = step.items[i].uses;
    for (size_t u = 0; u + 1 < uses.size(); ++u) {
      if (uses[u + 1] > uses[u] + 1) add(i, uses[u], uses[u + 1]);
    }
    const StepTable::Item& item = step.items[i];
    if (uses.empty()) continue;
    if (item.lives_through() || (item.existed_before() && item.carried())) {
      add(i, uses.back(), uses.front());
    }
    const auto calls = static_cast<uint32_t>(step.calls.size());
    if (item.carried() && uses.back() + 1 < item.end) add(i, uses.back(), calls);
  }
  return releases;
}

// Counts cases, so that a test can check that it covered some.
struct SimulationsSeen {
  int64_t fitting = 0, impossible = 0, stopped = 0, away = 0, again = 0, timed = 0;
  int64_t in_place = 0;
  std::map<Schedule::Do, int64_t> code;
};

auto figures(const StepSimulator::Outcome& outcome) {
  return std::tuple(outcome.time, outcome.recomputed, outcome.waited, outcome.copied,
                    outcome.shortfall);
}

void check_schedule(const TracedStep& step, const PlanLimits& limits,
                    const StepSimulator::Outcome& outcome, Schedule schedule,
                    SimulationsSeen& seen) {
  EXPECT_EQ(schedule.time, outcome.time);
  const Bytes most = max_resident(schedule);
  const int64_t over = (most - limits.space).count();
  EXPECT_LE(over, outcome.shortfall.count());
  EXPECT_EQ(over > 0, outcome.shortfall > Bytes(0));
  schedule.peak = schedule.peak_bound = most;
  PlanLimits any = limits;
  any.space = std::max(limits.space, most);
  any.tier_space = units(1'000'000);
  EXPECT_EQ(schedule_violations(step.trace, any, schedule, 3), std::vector<std::string>());
  for (const Schedule::Instruction& instruction : schedule.code) {
    ++seen.code[instruction.what];
    seen.again += instruction.again;
    seen.in_place += instruction.in_place();
  }
  uint32_t there = 0;
  for (const StepTrace::Storage& storage : step.trace.storages) there += storage.at_start;
  seen.away += there - schedule.initial_blocks;
}

void check_step(const TracedStep& step, const PlanLimits& limits, const Releases& releases,
                SimulationsSeen& seen, std::mt19937& random) {
  StepSimulator simulator(step.trace, step.table, limits);
  UnplacedSchedule unplaced;
  const auto outcome = simulator.write(releases, {}, unplaced);
  seen.impossible += !outcome.possible;
  // The result does not depend on earlier simulations, or on whether the schedule is written.
  simulator.run(random_releases(step.table, random));
  const auto again = simulator.run(releases);
  EXPECT_EQ(again.possible, outcome.possible);
  EXPECT_EQ(again.cost, outcome.cost);
  if (!outcome.possible) return;
  EXPECT_EQ(figures(again), figures(outcome));
  EXPECT_EQ(outcome.time, step.table.duration + outcome.recomputed + outcome.waited);
  check_schedule(step, limits, outcome, unplaced.schedule, seen);
  seen.fitting += outcome.shortfall == Bytes(0) && !releases.empty();
  // A plan that costs no more than `enough` is simulated to its end.
  EXPECT_EQ(simulator.run(releases, outcome.cost).calls, outcome.calls);
  const auto stopped = simulator.run(releases, outcome.cost * 0.9);
  EXPECT_GT(stopped.cost, outcome.cost * 0.9);
  EXPECT_LE(stopped.cost, outcome.cost * (1 + 1e-12));
  seen.stopped += stopped.calls < outcome.calls;
}

TEST(RandomSimulation, WritesWhatItWentThrough) {
  SimulationsSeen seen;
  for (uint32_t seed = 1; seed <= cases(4000u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const TracedStep step(with_kept_sources(random_trace(random)));
    PlanLimits limits = random_limits(random);
    limits.latency = Nanos(random() % 100);
    check_step(step, limits, random_releases(step.table, random), seen, random);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen.fitting, cases(500));
  EXPECT_GT(seen.impossible, cases(100));
  EXPECT_GT(seen.stopped, cases(1000));
  EXPECT_GT(seen.away, cases(200));
  EXPECT_GT(seen.again, cases(1000));
  EXPECT_GT(seen.in_place, cases(1000));
  using enum Schedule::Do;
  for (const Schedule::Do what : {kRun, kUpload, kFree, kEvict, kCopyOut, kOffload, kCopyIn}) {
    EXPECT_GT(seen.code[what], cases(500)) << static_cast<int>(what);
  }
}

// However slow the link is, the step takes what it takes with bytes of its own for each block.
TEST(RandomSimulation, ParallelSafeLayoutsNeverWaitForBytes) {
  int64_t shared = 0, copies = 0;
  for (uint32_t seed = 1; seed <= cases(1000u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const TracedStep step(with_kept_sources(random_trace(random)));
    PlanLimits limits = random_limits(random);
    StepSimulator simulator(step.trace, step.table, limits);
    UnplacedSchedule unplaced;
    if (!simulator.write(random_releases(step.table, random), {}, unplaced).possible) continue;
    limits.tier_space = units(1'000'000);
    const Schedule safe = parallel_safe(step.trace, limits, unplaced.schedule);
    const Schedule apart = side_by_side(step.trace, limits, unplaced.schedule);
    for (const int64_t nanos : {1, 100, 3000, 100'000}) {
      PlanLimits link = copy_within(1'000'000, nanos, 1'000'000);
      if (seed % 2 == 0) link.in_beside_bandwidth = unit_in(2 * nanos);
      EXPECT_EQ(simulate(step.trace, link, safe).time, simulate(step.trace, link, apart).time);
    }
    limits.space = safe.peak;
    ASSERT_EQ(schedule_violations(step.trace, limits, safe, 3), std::vector<std::string>());
    limits.space = apart.peak;
    ASSERT_EQ(schedule_violations(step.trace, limits, apart, 3), std::vector<std::string>());
    shared += safe.peak < apart.peak;
    copies += simulate(step.trace, limits, safe).copied > Nanos(0);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(shared, cases(300));
  EXPECT_GT(copies, cases(300));
}

// Adds a release, removes one, or changes when one comes back.
Releases changed(Releases releases, const StepTable& step, std::mt19937& random) {
  const Releases others = random_releases(step, random);
  if (others.empty()) return releases;
  const PlannedRelease& other = others[random() % others.size()];
  const auto same = [&](const PlannedRelease& it) {
    return std::tie(it.item, it.from, it.to) == std::tie(other.item, other.from, other.to);
  };
  const auto known = std::find_if(releases.begin(), releases.end(), same);
  if (known == releases.end()) {
    releases.push_back(other);
  } else if (random() % 2 == 0) {
    *known = other;
  } else {
    releases.erase(known);
  }
  return releases;
}

TEST(RandomSimulation, GoesOnFromMomentsOfThePlanSettledOn) {
  int64_t shorter = 0, settled = 0, stopped = 0;
  for (uint32_t seed = 1; seed <= cases(1000u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const TracedStep step(with_kept_sources(random_trace(random)));
    const PlanLimits limits = random_limits(random);
    StepSimulator simulator(step.trace, step.table, limits);
    Releases base;
    for (int change = 0; change < 20; ++change) {
      const Releases plan = changed(base, step.table, random);
      StepSimulator anew(step.trace, step.table, limits);
      const bool sends_back = random() % 8 != 0;
      simulator.set_sends_back(sends_back);
      anew.set_sends_back(sends_back);
      const auto expected = anew.run(plan);
      const auto outcome = simulator.run(plan);
      ASSERT_EQ(outcome.possible, expected.possible);
      if (!expected.possible) continue;
      ASSERT_EQ(figures(outcome), figures(expected));
      ASSERT_EQ(outcome.cost, expected.cost);
      shorter += outcome.calls < expected.calls;
      if (random() % 2 == 0) continue;
      base = plan;
      simulator.settle();
      ++settled;
      // A run that stopped early leaves what was settled on as it was.
      stopped += simulator.run(changed(base, step.table, random), 0.5 * outcome.cost).calls <
                 expected.calls;
    }
  }
  EXPECT_GT(shorter, cases(2000));
  EXPECT_GT(settled, cases(2000));
  EXPECT_GT(stopped, cases(1000));
}

}  // namespace
}  // namespace tidemark::planner::testing
