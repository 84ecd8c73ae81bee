// The default planner: makes a plan for a problem.
//
// Plans the order, then in-place pairs, then the layout. Never worse than any of the baselines
// (baselines/baselines.h), which are tried too while they are quick, except for those that are
// only compared. Stops at the deadline with the best plan so far. Deterministic for the same
// problem, seed and node budget.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <limits>

#include "runtime/planner/limits.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

struct PlannerOptions {
  Limits limits;         // the order may use half of the seconds, the layout the rest
  bool reorder = true;   // off: program order
  bool in_place = true;  // off: no pair of may_be_in_place is used
  // If no order needs as little as this, the layout is not searched for.
  Bytes space{std::numeric_limits<int64_t>::max()};
};

// Throws UsageError if check_problem() does. Ignores the budget: compare the plan's peak with
// it.
Plan plan_step(const Problem& problem, const PlannerOptions& options = {});

}  // namespace tidemark::planner
