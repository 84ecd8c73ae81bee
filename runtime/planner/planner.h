// From a problem to a plan: the default planner.
//
// Order first, then in-place pairs, then the layout. Never worse than any of the baselines
// (baselines/baselines.h), which are tried too while they are quick; stops at the deadline with
// the best there is; the same for the same problem, seed and node budget.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/limits.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

struct PlannerOptions {
  Limits limits;         // the order may take half of the seconds, the layout what is left
  bool reorder = true;   // off: program order
  bool in_place = true;  // off: no pair of may_be_in_place is made use of
};

// Throws UsageError if check_problem() does. The budget is not looked at: a plan above it shows
// that by its peak.
Plan plan_step(const Problem& problem, const PlannerOptions& options = {});

}  // namespace tidemark::planner
