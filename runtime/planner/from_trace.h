// A captured step as a planning problem.
//
// Operators keep their numbers. What is written in place gets a name for each version, all
// aliases of one storage; who reads a version comes before the next is written. A read is a
// barrier: everything before it in program order stays before, everything after, after.
//
// A storage lives until the program has let go of it, which may be later than its last use: the
// operator then being issued counts as a use.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/problem.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

struct FromTraceOptions {
  // Storages that are there before and after the step are left out of the memory (size 0):
  // whoever runs the plan keeps them apart.
  bool residents_apart = false;
  // Offer in-place pairs (Problem::may_be_in_place) for what operators say that they may
  // overwrite. Only for those who can run them so: the executor cannot yet, as the runtime
  // frees a storage after the operator that uses it last, and takes room for outputs before.
  bool in_place = false;
};

// REQUIRES: trace_violations() finds nothing.
Problem problem_from_trace(const StepTrace& graph, const FromTraceOptions& options = {});

}  // namespace tidemark::planner
