// The validator's part for several streams: finds placements that share bytes although nothing
// orders their users. Shares no code with the planners.
//
// Threads: functions without state.
#pragma once

#include <utility>
#include <vector>

#include "runtime/planner/plan.h"

namespace tidemark::planner {

// Pairs of positions in plan.placements, the lower first; empty under Freedom::kIssueOrder. Two
// may share a byte if all users of one precede all users of the other, by the problem's edges
// or, under Freedom::kStreams, by the issue order on one stream. One operator may use both if
// they are an in-place pair of the plan. O(operators * edges + pairs * users). REQUIRES: each
// storage and workspace has one placement; in-place pairs are allowed.
std::vector<std::pair<size_t, size_t>> stream_clashes(const Problem& problem, const Plan& plan);

}  // namespace tidemark::planner
