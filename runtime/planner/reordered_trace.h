// A step with its operators in another order, for planners that keep the order they are given.
//
//   trace      0 grad -> s4    1 grad -> s5    2 sgd s0! s4    3 sgd s1! s5
//   order      0, 2, 1, 3
//   reordered  0 grad -> s4    1 sgd s0! s4    2 grad -> s5    3 sgd s1! s5
//
// Storages keep their numbers. The program lets go of a storage no sooner than it does in its
// own order, and not before the storage's last user: a call that is put off holds what the
// program lets go of after it.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// Operator order[t] comes at position t. REQUIRES: trace_violations() finds nothing, and the
// order is one of problem_from_trace(trace).
StepTrace reordered(const StepTrace& trace, const std::vector<uint32_t>& order);

// Of a schedule for reordered(trace, order): makes it one for `trace`.
void rename_operators(Schedule& schedule, const std::vector<uint32_t>& order);

// In which order the schedule runs the program's operators.
std::vector<uint32_t> order_of(const Schedule& schedule);

// Program order, but that calls which only write in place, as an optimizer's do, come as soon
// as their data allow: what they alone still need is let go of then.
std::vector<uint32_t> updates_first(const StepTrace& trace);

}  // namespace tidemark::planner
