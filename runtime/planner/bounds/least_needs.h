// Relaxes a trace for lower bounds: a call needs only what all of its variants need.
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// The trace without variants. A call that has some reads what all of them and it read, and
// takes the least workspace and time of them. A lower bound for this trace holds for the
// original, whichever variants run.
StepTrace with_least_needs(StepTrace trace);

}  // namespace tidemark::planner
