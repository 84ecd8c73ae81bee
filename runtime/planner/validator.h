// Checks plans. Shares no code with the planners: it uses only the problem and the plan, and
// derives each rule from its definition, with its own counting.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

// Faults in the plan, in words; empty if the plan is valid:
// - each operator runs once, after its predecessors, and writers run before readers;
// - each storage and workspace has one offset, below the peak, for as long as it is used;
// - no two share a byte at one time, except for the plan's in-place pairs, if allowed;
// - under `freedom` no two share a byte at all, unless every user of one precedes every user
//   of the other in any execution: by the problem's edges, or on its stream;
// - peak and load are as stated, bound <= peak, and the peak is within the budget, if any.
// At most `limit` faults. REQUIRES: check_problem() passes.
std::vector<std::string> violations(const Problem& problem, const Plan& plan,
                                    size_t limit = 20);

// As above for a layout alone: each buffer lies within [0, height), no two share a byte at one
// time, and the highest ends at `height`.
std::vector<std::string> layout_violations(const std::vector<Buffer>& buffers,
                                           const Offsets& offsets, Bytes height,
                                           size_t limit = 20);

}  // namespace tidemark::planner
