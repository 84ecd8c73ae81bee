// A policy's own step as a schedule: recorded, its releases made as early as they can be, each
// block given a place. Nothing is decided anew.
//
//   as recorded   use a | ... space is wanted: | evict a | block b | ...
//   hoisted       use a | evict a | ...        | block b | ...
//
// A policy waits until it wants the space; with the whole step in view there is nothing to wait
// for. Less is resident at once, so that blocks can be laid out, and copies out begin when they
// can.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// Step follows step: what was released before its first use in the step goes after its last use
// in the step before, and so does what is there at the end but not at the beginning.
Schedule hoist_releases(const StepTrace& trace, Schedule schedule);

// Gives each block its place within limits.space. What is there both when the step begins and
// when it ends has the same place, so that step can follow step. Where there is space, a block
// that is being copied out keeps its place until the copy is expected to be done, so that
// nothing waits for it. None if no layout was found. `nodes`: steps of search.
std::optional<Schedule> place_recorded(const StepTrace& trace, const Schedule& schedule,
                                       const PlanLimits& limits, int64_t nodes);

}  // namespace tidemark::planner
