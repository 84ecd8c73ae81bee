// An integer program: minimise the sum of cost * variable, with linear rows and bounds.
//
//   minimise   peak                       variables  C (0 or 1), P (0 or 1), peak >= 0
//   subject to P - C <= 0                 a row: lower <= sum of factor * variable <= upper
//
// Threads: values, no state. Variables and rows are named by their positions.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::planner {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Variable {
  std::string name{};  // for people; solvers see C0, C1, ...
  double lower = 0;
  double upper = kInfinity;
  bool integer = false;
  double cost = 0;
};

struct Term {
  int variable = 0;
  double factor = 0;
};

struct Row {
  std::string name{};  // for people; solvers see R0, R1, ...
  double lower = -kInfinity;
  double upper = kInfinity;
  std::vector<Term> terms{};  // each variable at most once
};

struct Program {
  std::vector<Variable> variables;
  std::vector<Row> rows;
  std::vector<double> start;  // a solution to begin with, one value per variable; or empty

  int add_variable(Variable variable);  // its position
  int add_binary(std::string name);
  void add_row(Row row) { rows.push_back(std::move(row)); }
  size_t integer_count() const;
};

// Throws UsageError, naming the variable or row, for a bound or factor that is not a number, an
// empty range, a term whose variable is unknown or repeated, or a start of the wrong length.
void check_program(const Program& program);

double objective(const Program& program, const std::vector<double>& values);

// Faults of a solution, in words; empty if it is valid. Rows and bounds may be off by
// `tolerance` relative to the terms summed (at least 1), integers by kIntegerTolerance.
inline constexpr double kIntegerTolerance = 1e-5;
std::vector<std::string> solution_violations(const Program& program,
                                             const std::vector<double>& values,
                                             double tolerance = 1e-6, size_t limit = 5);

}  // namespace tidemark::planner
