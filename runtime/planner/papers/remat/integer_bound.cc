#include "runtime/planner/papers/remat/integer_bound.h"

#include <cmath>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/solver/solver.h"

namespace tidemark::planner {
namespace {

// What a solver's tolerance may add to a bound, relatively.
constexpr double kOptimumTolerance = 1e-6;

Program to_integer_program(const remat::MomentProgram& moments) {
  const LinearProgram& linear = moments.linear;
  Program program;
  for (size_t v = 0; v < linear.variables(); ++v) {
    Variable variable;
    variable.upper = linear.upper(v);
    variable.integer = moments.is_integer[v] != 0;
    variable.cost = linear.price(v);
    program.add_variable(std::move(variable));
  }
  for (size_t r = 0; r < linear.rows(); ++r) {
    Row row;
    row.upper = linear.limit(r);
    for (const LinearProgram::Term& term : linear.row(r)) {
      row.terms.push_back({static_cast<int32_t>(term.variable), term.coefficient});
    }
    program.add_row(std::move(row));
  }
  return program;
}

}  // namespace

remat::IntegerBound integer_bound() {
  const std::vector<Solver> solvers = find_solvers();
  if (solvers.empty()) return nullptr;
  return [solver = solvers.front()](const remat::MomentProgram& moments, double seconds) {
    SolveLimits limits;
    limits.seconds = seconds;
    try {
      const Solution solution = solve(to_integer_program(moments), limits, solver);
      return moments.constant + solution.bound - kOptimumTolerance * std::abs(solution.bound);
    } catch (const DataError&) {
      return -kInfinity;
    }
  };
}

}  // namespace tidemark::planner
