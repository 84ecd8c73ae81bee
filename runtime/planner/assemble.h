// Assembles plans: shared by the planners and the baselines.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

using Place = std::function<Offsets(const std::vector<Buffer>&)>;

// The plan for an order. In-place pairs are merged if `in_place`; `place` lays out the
// resulting rectangles. The caller sets bound, seconds and method.
Plan assemble(const Problem& problem, const std::vector<OpId>& order, bool in_place,
              const Place& place);

// Sets peak and load from placements and pairs.
void fill_figures(Plan& plan);

}  // namespace tidemark::planner
