// What bounds count of calls that have variants.
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// The trace without variants, in which a call needs and costs no more than any of them: it
// reads what all read, and takes the least workspace and the least time. Whatever no schedule
// of this trace can do better, none of the other can, whichever variants it runs.
StepTrace with_least_needs(StepTrace trace);

}  // namespace tidemark::planner
