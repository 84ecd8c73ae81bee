// Solves a method's integer program and reports how that ended.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/limits.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner::remat {

using Decode = std::function<std::vector<PlannedRun>(const std::vector<double>& values)>;

// With require_solver(), within what is left of the limits. No solution in time, and proof that
// there is none, are results with a note; so is a solver whose answer is not one.
RematResult solve_and_decode(const Problem& problem, const Program& program,
                             const Decode& decode, const Limits& limits,
                             const Stopwatch& watch);

}  // namespace tidemark::planner::remat
