// A step with its operators in another order, for planners that keep the given order.
//
//   trace      0 grad -> s4    1 grad -> s5    2 sgd s0! s4    3 sgd s1! s5
//   order      0, 2, 1, 3
//   reordered  0 grad -> s4    1 sgd s0! s4    2 grad -> s5    3 sgd s1! s5
//
// Storages keep their numbers. A storage is dropped no sooner than in the program's order and
// not before its last user: a deferred call holds storages that the program drops after it.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// Moves operator order[t] to position t. REQUIRES: trace_violations() finds nothing, and the
// order is valid for problem_from_trace(trace).
StepTrace reordered(const StepTrace& trace, const std::vector<uint32_t>& order);

// Converts a schedule for reordered(trace, order) into one for `trace`.
void rename_operators(Schedule& schedule, const std::vector<uint32_t>& order);

// The order in which the schedule runs the program's operators.
std::vector<uint32_t> order_of(const Schedule& schedule);

// Program order, except that calls which only write in place, such as an optimizer's, come as
// soon as their data allow: inputs that only they need can then be dropped.
std::vector<uint32_t> updates_first(const StepTrace& trace);

}  // namespace tidemark::planner
