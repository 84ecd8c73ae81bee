// A recorded step as a planning problem.
//
// Operators keep their numbers. A storage written in place gets a name for each version, all
// aliases of one storage; readers of a version precede the next write. A read is a barrier:
// earlier operators in program order stay before it, later ones after it.
//
// A storage lives until the program drops it, possibly after its last use: the operator then
// being issued counts as a use.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/problem.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

struct FromTraceOptions {
  // Storages that exist before and after the step take no memory in the problem (size 0):
  // whoever runs the plan keeps them apart.
  bool residents_apart = false;
  // Offers in-place pairs (Problem::may_be_in_place) for inputs that operators may overwrite.
  bool in_place = false;
};

// REQUIRES: trace_violations() finds nothing.
Problem problem_from_trace(const StepTrace& graph, const FromTraceOptions& options = {});

}  // namespace tidemark::planner
