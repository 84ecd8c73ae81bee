// Makes schedules that defer calls and also release storages, as tests need them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/releases/kept_sources.h"
#include "runtime/planner/releases/release_draft.h"
#include "runtime/planner/releases/step_simulator.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/step_table.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::testing {

// A random order that the step's data dependences allow; the same for the same generator.
inline std::vector<uint32_t> random_order(const StepTrace& trace, std::mt19937& random) {
  const auto before = planner::predecessors(planner::problem_from_trace(trace));
  std::vector<size_t> waits(before.size());
  std::vector<std::vector<uint32_t>> after(before.size());
  std::vector<uint32_t> ready, order;
  for (uint32_t k = 0; k < before.size(); ++k) {
    waits[k] = before[k].size();
    for (const planner::OpId op : before[k]) after[static_cast<size_t>(op)].push_back(k);
    if (waits[k] == 0) ready.push_back(k);
  }
  while (!ready.empty()) {
    const auto at = ready.begin() + random() % static_cast<uint32_t>(ready.size());
    const uint32_t k = *at;
    ready.erase(at);
    order.push_back(k);
    for (const uint32_t next : after[k]) {
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

// Chooses the releases for the step's calls in the schedule's order.
using ChooseReleases =
    std::function<std::vector<planner::PlannedRelease>(const StepTable& step)>;

// The step in that order with those releases, placed or not. None: it cannot be done.
inline std::optional<Schedule> schedule_with(
    const StepTrace& trace, const std::vector<uint32_t>& order, const ChooseReleases& choose,
    const PlanLimits& limits, const std::vector<Bytes>& foreign, bool with_places = true) {
  const StepTrace step = planner::with_kept_sources(planner::reordered(trace, order));
  const StepTable table(step);
  planner::UnplacedSchedule unplaced;
  PlanLimits room = limits;
  for (const Bytes size : foreign) room.space -= size;
  const auto outcome =
      planner::StepSimulator(step, table, room).write(choose(table), foreign, unplaced);
  if (!outcome.possible || outcome.shortfall > Bytes(0)) return std::nullopt;
  std::optional<Schedule> schedule = unplaced.schedule;
  schedule->peak = schedule->peak_bound = max_resident(*schedule);
  if (with_places) {
    planner::prefer_initial_places(unplaced, step, limits.space);
    schedule = planner::place_blocks(
        unplaced, limits, 50 * static_cast<int64_t>(unplaced.schedule.blocks.size()));
    if (!schedule) return std::nullopt;
  }
  planner::rename_operators(*schedule, order);
  const auto wrong = schedule_violations(trace, limits, *schedule, 1);
  TIDEMARK_CHECK(wrong.empty(), "a schedule that is right: " + wrong.front());
  return schedule;
}

// Releases half of all gaps, one way or the other.
inline ChooseReleases random_releases(const PlanLimits& limits, std::mt19937& random) {
  return [&](const StepTable& step) {
    std::vector<planner::PlannedRelease> releases;
    for (const planner::Gap& gap : planner::find_gaps(step, Bytes(1))) {
      const StepTable::Item& item = step.items[gap.item];
      const bool evictable = item.may_evict && item.producer != StepTable::kNone &&
                             !gap.wraps() && gap.to < step.calls.size();
      const bool offloadable = item.may_offload && limits.tier_space > Bytes(0);
      const uint32_t way = random() % 4;
      if (way < 2) continue;
      const uint32_t back = gap.to == 0 ? 0 : gap.to - 1;
      if (evictable && (way == 2 || !offloadable)) {
        releases.push_back({gap.item, gap.from, gap.to, planner::Release::kEvict, 0});
      } else if (offloadable) {
        releases.push_back({gap.item, gap.from, gap.to, planner::Release::kOffload, back});
      }
    }
    return releases;
  };
}

inline std::optional<Schedule> random_order_and_releases(const StepTrace& trace,
                                                         const PlanLimits& limits,
                                                         const std::vector<Bytes>& foreign,
                                                         uint32_t seed) {
  std::mt19937 random(seed);
  const auto order = random_order(trace, random);
  return schedule_with(trace, order, random_releases(limits, random), limits, foreign);
}

}  // namespace tidemark::testing
