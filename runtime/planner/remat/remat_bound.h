// Lower bounds: on the time of every schedule within a budget, and on the budget itself.
//
// Neither assumes an order of runs, and both count variants.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/remat/box_program.h"
#include "runtime/planner/remat/forced_runs.h"

namespace tidemark::planner::remat {

// A lower bound on the optimum with all variables 0 or 1, after at most so many seconds.
using IntegerBound = std::function<double(const BoxProgram& program, double seconds)>;

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

// Relaxations to a few moments (moment_program.h), of several numbers; the best of them.
TimeBound bound_time(const Options& options, const BoundOptions& bound);

// `count` nodes of the chain where memory is scarcest, spread evenly. All if there are fewer.
std::vector<NodeId> choose_moments(const Options& options, const ForcedRuns& forced,
                                   size_t count);

// No schedule's peak is lower: the most that any node that must run holds with its inputs, by
// its smallest variant.
int64_t bound_budget(const Problem& problem);

}  // namespace tidemark::planner::remat
