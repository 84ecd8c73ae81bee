// A policy's own step as a schedule: its releases are made as early as possible, and each block
// gets an offset. No decision is made anew.
//
//   as recorded   use a | ... space is wanted: | evict a | block b | ...
//   hoisted       use a | evict a | ...        | block b | ...
//
// A policy releases only when space is needed. With the whole step known, there is no reason to
// wait. Earlier releases leave less resident at once, so that blocks can be laid out, and
// copies out begin as soon as they can.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// Steps repeat, so releases wrap around: a release before a storage's first use in the step
// moves after its last use in the step before. The same holds for a storage that exists at the
// step's end but not at its beginning.
Schedule hoist_releases(const StepTrace& trace, Schedule schedule);

// Gives each block an offset within limits.space. A storage that exists both when the step
// begins and when it ends has the same offset at both, so that steps can repeat. Where space
// allows, a block being copied out keeps its offset until the copy should be done, so that
// nothing waits for it. None if no layout was found. `nodes`: steps of search.
std::optional<Schedule> place_recorded(const StepTrace& trace, const Schedule& schedule,
                                       const PlanLimits& limits, int64_t nodes);

}  // namespace tidemark::planner
