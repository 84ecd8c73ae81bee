// Plans rematerialisation: the fastest schedule found within a budget, and a bound on the time
// of all; and the least budget.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/remat/remat_bound.h"
#include "runtime/planner/remat/remat_schedule.h"

namespace tidemark::planner::remat {

struct RematOptions {
  // nodes: sequences evaluated, and iterations of linear programs. With it the schedule is the
  // same on every machine, if no integer bound is used.
  Limits limits{};
  IntegerBound integer{};  // null: linear programs alone
};

struct RematPlan {
  Schedule schedule{};   // valid; empty if none was found
  double bound = 0;      // no schedule takes less time
  bool feasible = true;  // false: proven that no schedule fits
  double seconds = 0;

  bool found() const { return !schedule.events.empty(); }
  double gap() const { return found() && bound > 0 ? schedule.time / bound - 1 : 0; }
};

// Search and bound take turns and end where they meet. REQUIRES: check_problem() passes.
RematPlan plan_remat(const Problem& problem, int64_t budget, const RematOptions& options);

struct LeastBudget {
  int64_t found = 0;  // bytes: the least peak of all schedules found; 0 if none was
  int64_t bound = 0;  // bytes: no schedule's peak is lower

  bool proven() const { return found == bound; }
};

LeastBudget find_least_budget(const Problem& problem, const Limits& limits);

}  // namespace tidemark::planner::remat
