// Makes a schedule for the executor from an order and a layout.
//
//   plan       position 0 f     1 g
//              storage a [0, 2), storage b [1, 2), workspace of g [1, 2)
//   schedule   code     0 run f -> a     1 run g -> b, workspace     2 free a     3 free b
//
// A storage is freed after the operator at its placement's last position, before the next
// operator; storages that end together are freed in order of their numbers. A storage that is
// overwritten in place is not freed. Parameters and
// other persistent storages are kept apart (Schedule::residents_apart).
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/plan.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// REQUIRES: `problem` is problem_from_trace(trace) with residents apart, and violations() finds
// nothing in `plan`.
Schedule schedule_from_plan(const StepTrace& trace, const Problem& problem, const Plan& plan);

}  // namespace tidemark::planner
