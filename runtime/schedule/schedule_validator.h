// Checks schedules. Shares no code with what makes, prices or runs them: it knows the trace,
// the limits and the schedule alone, and counts everything itself.
//
// It goes through the code once and keeps, of each storage, what an onlooker would know: has it
// been made, how often was it written, which block holds it, is there a valid copy, does the
// program still hold it.
//
//   code         s2       s3       the onlooker's notes after the instruction
//   0 run op 0   block 1  -
//   1 run op 1   block 1  block 2  op 1 lets go of s3
//   2 evict s2   -        block 2  s2 can be computed: its inputs are as op 0 saw them
//
//   3 free s3    -        -        right: the program has let go of it
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

// What is wrong with it, in words, each line with the instruction's number; empty if the
// schedule is good:
// - Order: each operator of the trace runs once, where its data allow it: an operator reads the
//   versions that it read in the trace. What comes before a read in the program comes before it
//   in the code, what comes after it, after.
// - Recomputation: only of calls that have run and write nothing in place, from the versions
//   that they read then. An output goes to scratch, or to a block if it has none.
// - Residence: inputs are resident when an operator runs. Storages leave as the trace allows
//   (may_evict, may_offload) and come back from valid copies; a write ends the copy.
// - Lives: a storage is freed once the program has let go of it and no operator that is still
//   to run uses it. At the end everything that stays is resident or copied, and nothing else
//   is.
// - Way out: after every instruction, everything that the program holds, or that an operator
//   still to run uses, is resident, copied, or can be computed from what is. So a schedule can
//   be left anywhere.
// - Blocks: each instruction has those that it must have, of the right storages and sizes, from
//   where it takes them to where they end. Sizes are as in the trace, or rounded up to
//   kAlignment.
// - Places: if placed, no two blocks share a byte at one time, and all are within the room.
// - Figures: peak as stated, the bound no higher; copies within `tier_space`; if not placed,
// the
//   peak is within the room but for the stated shortfall.
// - With residents_apart: residents have no blocks, fit beside the peak, and nothing is
// released.
//
// Of foreign storages nothing is known, so they may only be moved or freed. At most `limit`
// lines. REQUIRES: trace_violations() finds nothing.
std::vector<std::string> schedule_violations(const StepTrace& trace, const PlanLimits& limits,
                                             const Schedule& schedule, size_t limit = 20);

}  // namespace tidemark
