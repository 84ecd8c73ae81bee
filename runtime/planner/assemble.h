// Puts plans together: what the planners and the baselines have in common.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

using Place = std::function<Offsets(const std::vector<Buffer>&)>;

// The plan for an order, with what it places given to `place` as rectangles, in-place pairs
// merged if wanted. Bound, seconds and method are left to the caller.
Plan assemble(const Problem& problem, const std::vector<OpId>& order, bool in_place,
              const Place& place);

// Peak and load from placements and pairs.
void fill_figures(Plan& plan);

}  // namespace tidemark::planner
