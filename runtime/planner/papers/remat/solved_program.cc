#include "runtime/planner/papers/remat/solved_program.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/errors.h"

namespace tidemark::planner::remat {
namespace {

// What a solver's tolerance may add to a bound, relatively.
constexpr double kBoundTolerance = 1e-6;

std::string why_none(const Solution& solution) {
  switch (solution.status) {
    case SolveStatus::kInfeasible: return "infeasible: no schedule of this kind fits";
    case SolveStatus::kUnbounded: return "the solver calls the program unbounded";
    default: break;
  }
  return "no solution in time" + (solution.note.empty() ? "" : ": " + solution.note);
}

}  // namespace

RematResult solve_and_decode(const Problem& problem, const Program& program,
                             const Decode& decode, const Limits& limits,
                             const Stopwatch& watch) {
  RematResult result;
  result.variables = program.variables.size();
  result.rows = program.rows.size();
  result.undecided = true;
  const Solver solver = require_solver();
  SolveLimits solve_limits;
  solve_limits.seconds = watch.left();
  solve_limits.seed = limits.seed;
  if (solve_limits.seconds <= 0) {
    result.note = "no time was left for the solver";
    result.seconds = watch.seconds();
    return result;
  }
  try {
    const Solution solution = solve(program, solve_limits, solver);
    result.status = solution.status;
    result.undecided = solution.status == SolveStatus::kUnknown;
    if (std::isfinite(solution.bound)) {
      result.own_bound =
          std::max(0.0, solution.bound - kBoundTolerance * std::abs(solution.bound));
    }
    if (solution.values.empty()) {
      result.note = why_none(solution);
    } else {
      result.schedule = schedule_runs(problem, decode(solution.values));
      if (solution.status != SolveStatus::kOptimal) result.note = "not proven optimal in time";
    }
  } catch (const DataError& error) {
    result.note = error.what();
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace tidemark::planner::remat
