// Validates schedules. Shares no code with the code that makes, prices or runs them: it uses
// only the trace, the limits and the schedule, and counts everything itself.
//
// The validator goes through the code once and tracks the state of each storage: whether it has
// been made, how often it was written, which block holds it, whether a valid copy exists, and
// whether the program still holds it.
//
//   code         s2       s3       the onlooker's notes after the instruction
//   0 run op 0   block 1  -
//   1 run op 1   block 1  block 2  op 1 drops s3
//   2 evict s2   -        block 2  s2 can be computed: its inputs are as op 0 saw them
//
//   3 free s3    -        -        right: the program has dropped it
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

// Faults in the schedule, in words, each line with the instruction's number. Empty if the
// schedule is valid:
// - Order: each operator of the trace runs once, where its data allow: it reads the versions
//   that it read in the trace. Operators before a read in the program come before the read in
//   the code; operators after it come after.
// - Variants: a call's first run may be one of its variants, which then counts as what the
//   operator reads, wherever this list speaks of that. What the call itself reads stays
//   obtainable until then, as the schedule may be left before.
// - Recomputation: only calls that have run and write nothing in place, from the versions
//   that they read then. An output goes to scratch, or to a block if it has none.
// - Residence: inputs are resident when an operator runs. Storages leave as the trace allows
//   (may_evict, may_offload) and come back from valid copies; a write ends the copy.
// - Lives: a storage is freed once the program has dropped it and no operator still to run
//   uses it. At the end, every storage that survives the step is resident or copied, and no
//   other storage is.
// - Way out: after every instruction, each storage that the program holds, or that an
//   operator still to run uses, is resident, copied, or computable from such storages. A
//   schedule can therefore be left anywhere.
// - In place: only an operator of the program, over an input that it may overwrite, of its
//   first output's size, which the program has dropped and no operator still to run uses.
//   The input's block ends, and the output's begins, at the instruction, at one offset.
// - Blocks: each instruction has the blocks it needs, of the right storages and sizes, from
//   where it takes them to where they end. Sizes are as in the trace, or rounded up to
//   kAlignment.
// - Placement: in a placed schedule, no two blocks overlap in space and time, and all blocks
//   are within the space limit.
// - Figures: the peak is as stated, and the bound no higher; copies are within `tier_space`.
//   Unplaced, the peak is within the space limit, except for the stated shortfall.
// - With residents_apart: residents have no blocks and fit beside the peak; nothing is
//   released.
//
// Nothing is known of foreign storages, so they may only be moved or freed. At most `limit`
// lines. REQUIRES: trace_violations() finds nothing.
std::vector<std::string> schedule_violations(const StepTrace& trace, const PlanLimits& limits,
                                             const Schedule& schedule, size_t limit = 20);

}  // namespace tidemark
