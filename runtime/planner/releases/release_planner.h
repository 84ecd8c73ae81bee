// Makes a schedule for a step that does not fit: what to evict and offload, when to bring it
// back, and where each block lies.
//
//   StepTrace --draft--> releases --search--> better releases --write--> Schedule
//             --layout--> placed Schedule
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
  std::vector<PlannedRelease> releases;  // the schedule's
};

// Search effort in simulated calls, so that a schedule is the same on every machine. kThorough
// takes some seconds, kQuick a fifth of a second. A search may end before its effort is used;
// with a multiple of kThorough it tries as many times as many changes.
inline constexpr int64_t kThorough = 48'000'000;
inline constexpr int64_t kQuick = 2'000'000;

// Plans within limits.space. `foreign`: sizes of storages that live through the step and are
// not used in it.
//
// The schedule is placed if a layout is found in which few blocks move. Otherwise blocks are
// compacted whenever space is fragmented, and some bytes may be short (Schedule::shortfall): up
// to a tenth of the space in total; or up to a tenth at any one time, if the link can carry the
// total out and in within a twentieth of the step. None: nothing was found that fits.
//
// `work`, if given: the work done is added, in simulated calls or equivalents. `stop`, if
// given: ends the search soon once set.
std::optional<ReleaseSchedule> plan_releases(const StepTrace& trace, const PlanLimits& limits,
                                             const std::vector<Bytes>& foreign,
                                             int64_t effort = kThorough,
                                             int64_t* work = nullptr,
                                             const std::atomic<bool>* stop = nullptr);

}  // namespace tidemark::planner
