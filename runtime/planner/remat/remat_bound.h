// Lower bounds: on the time of every schedule within a budget, and on the budget itself.
//
// Neither assumes an order of runs, and both count variants.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/remat/moment_program.h"

namespace tidemark::planner::remat {

// A lower bound on the optimum with all variables 0 or 1, after at most so many seconds.
using IntegerBound = std::function<double(const MomentProgram& program, double seconds)>;

struct BoundOptions {
  Limits limits{};         // nodes: iterations of the linear programs
  double enough = 0;       // a known schedule's time: a bound that reaches it is the last
  IntegerBound integer{};  // null: linear programs alone
};

struct TimeBound {
  double time = 0;
  bool feasible = true;  // false: proven that no schedule fits in the budget
  double seconds = 0;
};

// The best of many relaxations to a few moments (moment_program.h). Moments are added one by
// one, each where it raises the bound most; one or two are often best, because with more
// windows a linear program may split a run over them. The solver, if given, gets the best set.
TimeBound bound_time(const Options& options, const BoundOptions& bound);

// No schedule's peak is lower: the most that any node that must run holds with its inputs, by
// its smallest variant.
int64_t bound_budget(const Problem& problem);

}  // namespace tidemark::planner::remat
