// What a schedule takes, without running it: compute and the two directions of the link, each a
// queue, and the bytes of the arena, which one user after the other takes.
//
//   compute   | op 0 | op 1 |    wait    | op 2 |
//   out              | s1 ------>|                   op 2's output lies where s1 was
//   in                           | s3 -->|           and so does what comes in for it
//
// Compute runs the code in its order. A copy is issued with the code and starts when it can:
//   out      once the storage was written last, or is in, and the link is free outwards
//   in       once its own copy is out, its bytes are free, and the link is free inwards
//   upload   as a copy in, but not before compute gets there: the program brings the data then
// Nothing that comes after a read in the code starts before compute has got to the read.
//
// Bytes are free once compute has run what uses them and no copy reads or writes them. If the
// schedule is placed, whoever takes a block waits for those whose bytes overlap its own; else
// bytes are counted against the room, and those that are free first are taken first.
//
// At the end compute waits for copies of what is away then, as the next step begins without it.
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct ScheduleCost {
  Nanos time{0};        // of compute, from the first operator to the end of the step
  Nanos recomputed{0};  // of it, in calls that ran again
  Nanos waited{0};      // of it, for copies
  Nanos copied{0};      // how long the link was busy, both ways, uploads left out
  Bytes peak{0};        // highest end of a block, or, if not placed, most bytes at once
  Bytes tier_peak{0};   // most bytes of valid copies at once
  bool operator==(const ScheduleCost&) const = default;
};

// REQUIRES: schedule_violations() finds nothing, but for limits that are too small.
ScheduleCost simulate(const StepTrace& trace, const PlanLimits& limits,
                      const Schedule& schedule);

}  // namespace tidemark
