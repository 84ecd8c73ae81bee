// Checks plans. Shares no code with what makes them: it knows the problem and the plan alone,
// and takes each rule from the definition, by its own counting.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

// What is wrong, in words; empty if the plan is good:
// - each operator runs once, after those before it, and writers before readers;
// - each storage and workspace has one place, below the peak, for as long as it is used;
// - no two share a byte at one time, except as in_place says and the problem allows;
// - under a `freedom` no two share a byte at all, unless every user of the one comes before
// each
//   of the other's whatever else runs when: by the problem's edges, or on its stream;
// - peak and load are as stated, bound <= peak, and the peak is within the budget, if any.
// At most `limit` of them. REQUIRES: check_problem() passes.
std::vector<std::string> violations(const Problem& problem, const Plan& plan,
                                    size_t limit = 20);

// The same for a layout alone: each buffer within [0, height), no two that share a time and a
// byte, and one that ends at `height`.
std::vector<std::string> layout_violations(const std::vector<Buffer>& buffers,
                                           const Offsets& offsets, Bytes height,
                                           size_t limit = 20);

}  // namespace tidemark::planner
