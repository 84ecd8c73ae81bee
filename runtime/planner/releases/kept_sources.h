// How long a storage really stays.
//
// The program lets go of a batch early, but what has been computed from it may have to be
// computed again: a storage that no call can make, such as an upload or what has been written
// in place, stays for as long as a recipe reads it. A recipe lives as long as what it made,
// which lives as long as the program or another recipe holds it.
//
//   upload x    a = f(x)    b = g(a)    let go of x, then a    ...    let go of b
//                                       x stays ------------------->
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// The same step, with each storage let go of when its bytes really go while recipes are kept.
// REQUIRES: trace_violations() finds nothing.
StepTrace with_kept_sources(StepTrace trace);

}  // namespace tidemark::planner
