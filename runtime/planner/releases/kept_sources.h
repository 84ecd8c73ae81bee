// How long each storage really stays.
//
// The program drops a batch early, but results computed from it may have to be recomputed. A
// storage that no call can make, such as an upload or one written in place, therefore stays as
// long as a recipe reads it. A recipe lives as long as its outputs, and these live as long as
// the program or another recipe holds them.
//
//   upload x    a = f(x)    b = g(a)    drop x, then a    ...    drop b
//                                       x stays ------------------->
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// The same step, with each storage dropped when its bytes are freed while recipes are kept.
// REQUIRES: trace_violations() finds nothing.
StepTrace with_kept_sources(StepTrace trace);

}  // namespace tidemark::planner
