#include "runtime/planner/papers/remat/integer_bound.h"

#include <cmath>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/solver/solver.h"

namespace tidemark::planner {
namespace {

// What a solver's tolerance may add to a bound, relatively.
constexpr double kTolerance = 1e-6;

Program to_integer_program(const remat::BoxProgram& box) {
  Program program;
  for (size_t j = 0; j < box.cost.size(); ++j) {
    Variable variable;
    variable.upper = 1;
    variable.integer = box.is_integer[j] != 0;
    variable.cost = box.cost[j];
    program.add_variable(std::move(variable));
  }
  for (size_t r = 0; r < box.rows.size(); ++r) {
    Row row;
    row.upper = box.limits[r];
    for (const remat::BoxTerm& term : box.rows[r]) {
      row.terms.push_back({term.variable, term.factor});
    }
    program.add_row(std::move(row));
  }
  return program;
}

}  // namespace

remat::IntegerBound integer_bound() {
  const std::vector<Solver> solvers = find_solvers();
  if (solvers.empty()) return nullptr;
  return [solver = solvers.front()](const remat::BoxProgram& box, double seconds) {
    SolveLimits limits;
    limits.seconds = seconds;
    try {
      const Solution solution = solve(to_integer_program(box), limits, solver);
      return box.constant + solution.bound - kTolerance * std::abs(solution.bound);
    } catch (const DataError&) {
      return -kInfinity;
    }
  };
}

}  // namespace tidemark::planner
