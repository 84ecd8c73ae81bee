// A captured training step as a rematerialisation problem.
//
// - Fixed bytes: storages that exist before the step, and uploads.
// - A node for each call and read, with the value that it makes. Several outputs of a call are
//   one value as long as their last reader is the same. Those with another last reader than the
//   largest one, such as a parameter's gradient that waits for its update, are a rider.
// - A call that writes in place runs once. If it writes a storage from before the step, later
//   readers depend on it; if it writes a value of the step, it makes a new value that takes the
//   old one's place.
// - Storages that outlive the step become fixed when their call runs, which it does once.
//
// remat-1 cannot say that a write comes after the last reader of what it overwrites. Schedules
// that keep the listed order, as those of two_pass.h do, keep that too; others may not, and
// cannot be run then.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/remat_problem.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner::remat {

struct StepProblem {
  Problem problem{};
  std::vector<uint32_t> op_of{};  // by node: the operator of the trace
};

// Times in ms. REQUIRES: trace_violations() finds nothing.
StepProblem problem_from_step(const StepTrace& trace);

}  // namespace tidemark::planner::remat
