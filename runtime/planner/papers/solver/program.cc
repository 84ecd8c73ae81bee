#include "runtime/planner/papers/solver/program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark::planner {
namespace {

std::string label(const char* what, size_t position, const std::string& name) {
  return std::string(what) + " " + std::to_string(position) + " '" + name + "'";
}

}  // namespace

int Program::add_variable(Variable variable) {
  variables.push_back(std::move(variable));
  return static_cast<int>(variables.size()) - 1;
}

int Program::add_binary(std::string name) {
  return add_variable(
      {.name = std::move(name), .lower = 0, .upper = 1, .integer = true, .cost = 0});
}

size_t Program::integer_count() const {
  return static_cast<size_t>(std::count_if(variables.begin(), variables.end(),
                                           [](const Variable& v) { return v.integer; }));
}

void check_program(const Program& program) {
  const auto fail = [](const std::string& what) { throw UsageError("[program] " + what); };
  for (size_t i = 0; i < program.variables.size(); ++i) {
    const Variable& v = program.variables[i];
    if (!std::isfinite(v.cost)) fail(label("variable", i, v.name) + ": its cost is not finite");
    // Written so that a NaN bound fails too.
    if (!(v.lower <= v.upper) || v.lower == kInfinity || v.upper == -kInfinity) {
      fail(label("variable", i, v.name) + ": its bounds admit no value");
    }
  }
  std::vector<size_t> seen(program.variables.size(), SIZE_MAX);
  for (size_t i = 0; i < program.rows.size(); ++i) {
    const Row& row = program.rows[i];
    if (!(row.lower <= row.upper) || row.lower == kInfinity || row.upper == -kInfinity) {
      fail(label("row", i, row.name) + ": its bounds admit no value");
    }
    for (const Term& term : row.terms) {
      if (term.variable < 0 || static_cast<size_t>(term.variable) >= seen.size()) {
        fail(label("row", i, row.name) +
             ": no such variable: " + std::to_string(term.variable));
      }
      if (seen[term.variable] == i) {
        fail(label("row", i, row.name) + ": two terms of " +
             label("variable", static_cast<size_t>(term.variable),
                   program.variables[term.variable].name));
      }
      seen[term.variable] = i;
      if (!std::isfinite(term.factor)) {
        fail(label("row", i, row.name) + ": a coefficient is not finite");
      }
    }
  }
  if (!program.start.empty() && program.start.size() != program.variables.size()) {
    fail("the start has " + std::to_string(program.start.size()) + " values for " +
         std::to_string(program.variables.size()) + " variables");
  }
}

double objective(const Program& program, const std::vector<double>& values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += program.variables[i].cost * values[i];
  return sum;
}

std::vector<std::string> solution_violations(const Program& program,
                                             const std::vector<double>& values,
                                             double tolerance, size_t limit) {
  if (values.size() != program.variables.size()) {
    return {std::to_string(values.size()) + " values for " +
            std::to_string(program.variables.size()) + " variables"};
  }
  std::vector<std::string> found;
  const auto report = [&](const std::string& what) {
    if (found.size() < limit) found.push_back(what);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const Variable& v = program.variables[i];
    const double slack = tolerance * std::max(1.0, std::abs(values[i]));
    // Written so that NaN fails.
    if (!(values[i] >= v.lower - slack && values[i] <= v.upper + slack)) {
      report(label("variable", i, v.name) + " is " + std::to_string(values[i]) + ", outside [" +
             std::to_string(v.lower) + ", " + std::to_string(v.upper) + "]");
    }
    if (v.integer && !(std::abs(values[i] - std::round(values[i])) <= kIntegerTolerance)) {
      report(label("variable", i, v.name) + " is " + std::to_string(values[i]) +
             ", not an integer");
    }
  }
  for (size_t i = 0; i < program.rows.size(); ++i) {
    const Row& row = program.rows[i];
    double sum = 0, size = 1;
    for (const Term& term : row.terms) {
      const double part = term.factor * values[term.variable];
      sum += part;
      size = std::max(size, std::abs(part));
    }
    const double slack = tolerance * size;
    if (!(sum >= row.lower - slack && sum <= row.upper + slack)) {
      report(label("row", i, row.name) + " adds up to " + std::to_string(sum) + ", outside [" +
             std::to_string(row.lower) + ", " + std::to_string(row.upper) + "]");
    }
  }
  return found;
}

}  // namespace tidemark::planner
