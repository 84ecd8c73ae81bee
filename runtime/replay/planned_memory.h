// A captured step's memory with a fixed place for each block, for budgets in which the step
// does not fit without releasing: the policy's decisions as they were, at offsets chosen with
// all of the step in view. Nothing is decided, and nothing is in pieces: where no layout is
// found in which all blocks stay where they began, a few move at moments that are planned too.
//
//   |  what is there between steps  |         everything else, at planned offsets            |
//   0                               (its places are others' while it is away)           budget
//
// Threads: values, no state.
#pragma once

#include <vector>

#include "runtime/cost/link_rate.h"
#include "runtime/planner/limits.h"
#include "runtime/replay/memory_trace.h"

namespace tidemark {

struct PlannedMemory {
  MemoryTrace trace;
  std::vector<Offset> offsets;    // of trace.blocks, at first
  std::vector<MemoryMove> moves;  // in order
  Bytes moved{0};                 // with what the next step has to put back
  Bytes peak{0};                  // highest end of a block
  Bytes load{0};                  // most bytes in blocks at once: no layout is lower
};

// What is there both when the step begins and when it ends has the same place, so that step can
// follow step. Where there is room, a block that is being copied out keeps its place until the
// copy is expected to be done, so that nothing waits for it.
//
// Throws UsageError if no layout within `capacity` was found, or if the trace is not whole.
PlannedMemory plan_memory(const StepTrace& graph, MemoryTrace trace, Bytes capacity,
                          const LinkRates& links, const planner::Limits& limits);

}  // namespace tidemark
