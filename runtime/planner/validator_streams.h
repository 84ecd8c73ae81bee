// The validator's part for several streams: which placements share bytes although nothing keeps
// their users apart. Shares no code with what makes plans.
//
// Threads: functions without state.
#pragma once

#include <utility>
#include <vector>

#include "runtime/planner/plan.h"

namespace tidemark::planner {

// Pairs of positions in plan.placements, the lower first; none under Freedom::kIssueOrder. Two
// may share a byte if all users of the one come before all of the other's, by the problem's
// edges or, under Freedom::kStreams, by the order of issue on one stream; where an operator
// uses both, as an in-place pair of the plan. O(operators * edges + pairs * users).
// REQUIRES: each storage and workspace has one place; in-place pairs are allowed.
std::vector<std::pair<size_t, size_t>> stream_clashes(const Problem& problem, const Plan& plan);

}  // namespace tidemark::planner
