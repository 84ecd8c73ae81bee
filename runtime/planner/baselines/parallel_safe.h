// Layouts of a schedule with copies in which no stream waits for bytes (MXNet's memory note:
// "always produce memory allocation plan that is safe").
//
// Compute and the two directions of the link are three queues. A block's bytes go to a later
// block only if that block's first user waits for every user of the bytes anyway: because it
// comes later in the same queue, or for its data.
//
//   compute   | op 0: a | op 1 | op 2 |    | op 3: a |
//   out                 | a ----->|
//   in                                | a >|
//
// a's bytes may go to its own copy in and to operators after op 3, never to op 1 or 2: neither
// waits for the copy out. So what is copied out leaves its bytes idle until it is back. This
// is a baseline: our layouts give the bytes to op 2, and the executor makes it wait for the
// copy if the copy is late.
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// The same instructions without moves, each block at its lowest place, the largest first.
// Persistent storages end where they begin. `time` is what simulate() says. O(blocks^2).
// REQUIRES: schedule_violations() finds nothing but limits that are too small.
Schedule parallel_safe(const StepTrace& trace, const PlanLimits& limits,
                       const Schedule& schedule);

// The same with every block at bytes of its own, except where an operator runs in place and
// where a persistent storage returns: what the schedule takes where space costs nothing.
Schedule side_by_side(const StepTrace& trace, const PlanLimits& limits,
                      const Schedule& schedule);

}  // namespace tidemark::planner
