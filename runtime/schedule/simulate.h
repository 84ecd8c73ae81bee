// The cost of a schedule, computed without running it. Compute and both directions of the link
// are queues; the arena's bytes are reused by one block after another.
//
//   compute   | op 0 | op 1 |    wait    | op 2 |
//   out              | s1 ------>|                   op 2's output lies where s1 was
//   in                           | s3 -->|           and so does what comes in for it
//
// Compute runs the code in order. A copy is issued with the code and starts as soon as
// possible:
//   out      once its last write or its copy in is done, and the outward link is free
//   in       once its copy out is done, its bytes are free, and the inward link is free
//   upload   as a copy in, but not before compute reaches it: the program brings the data then
// Where the two directions slow each other down (PlanLimits), link.h says how.
// Nothing after a read in the code starts before compute has reached the read.
//
// Bytes are free once compute has finished with them and no copy reads or writes them. In a
// placed schedule, a new block waits for earlier blocks that overlap it. Otherwise bytes are
// counted against the space limit, and the bytes freed first are reused first.
//
// At the end, compute waits for copies of storages that are away, since the next step begins
// without them.
//
// Threads: functions without state.
#pragma once

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct ScheduleCost {
  Nanos time{0};        // compute, from the first operator to the step's end
  Nanos recomputed{0};  // part of `time` spent in recomputations
  Nanos waited{0};      // part of `time` spent waiting for copies
  Nanos copied{0};      // copies in both directions, without uploads, as if each ran alone
  Bytes peak{0};        // highest end of a block, or, if not placed, most bytes at once
  Bytes tier_peak{0};   // most bytes of valid copies at once
  bool operator==(const ScheduleCost&) const = default;
};

// REQUIRES: schedule_violations() finds no fault other than limits that are too small.
ScheduleCost simulate(const StepTrace& trace, const PlanLimits& limits,
                      const Schedule& schedule);

}  // namespace tidemark
