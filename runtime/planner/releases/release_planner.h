// A schedule for a step that does not fit: what is evicted, offloaded and brought back when,
// and where each block lies.
//
//   StepTrace --draft--> releases --search--> better ones --write--> Schedule --layout-->
//   placed
//
// Threads: functions without state.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/planner/releases/release_draft.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

struct ReleaseSchedule {
  Schedule schedule;
  std::vector<PlannedRelease> releases;  // that it came from: a draft for the next
};

// How hard to look, in calls that simulations go through, so that a schedule is the same on
// every machine: some seconds, or a fifth of one.
inline constexpr int64_t kThorough = 48'000'000;
inline constexpr int64_t kQuick = 2'000'000;

// Within limits.space, all that there is. `foreign`: sizes of storages that live through the
// step and are not used in it. `draft`: releases to begin with, of a step like it; empty: none.
//
// Placed where a layout is found in which few blocks move. Else blocks are compacted whenever
// space is in pieces, and some may be short (Schedule::shortfall): a tenth of the room in all;
// or that at any one time, and in all what the link carries out and in again in a twentieth of
// the step. None: nothing was found that fits.
//
// `work`, if given: what it took is added, in calls gone through and what takes as long.
// `stop`, if given: ends it soon once set.
std::optional<ReleaseSchedule> plan_releases(const StepTrace& trace, const PlanLimits& limits,
                                             const std::vector<Bytes>& foreign,
                                             std::vector<PlannedRelease> draft = {},
                                             int64_t effort = kThorough,
                                             int64_t* work = nullptr,
                                             const std::atomic<bool>* stop = nullptr);

}  // namespace tidemark::planner
