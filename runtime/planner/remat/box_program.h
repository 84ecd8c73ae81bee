// Linear programs over the unit box, and lower bounds on their optima without a solver.
//
//   minimise   constant + sum of cost * x       subject to   sum of factor * x <= limit, each
//   row,       0 <= x <= 1
//
// Any prices >= 0 of the rows give a bound, whether optimal or not: add price * (row - limit)
// to the objective, and each x takes the better end of its box. The prices come from the
// primal-dual hybrid gradient method (Chambolle and Pock, 2011) with diagonal step sizes (Pock
// and Chambolle, 2011) and restarts from averages (Applegate et al., PDLP, 2021).
//
// Threads: values and functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/limits.h"

namespace tidemark::planner::remat {

struct BoxTerm {
  int32_t variable = 0;
  double factor = 0;
};

struct BoxProgram {
  double constant = 0;
  std::vector<double> cost{};         // by variable
  std::vector<uint8_t> is_integer{};  // by variable: 0 or 1 in the unrelaxed program
  std::vector<std::vector<BoxTerm>> rows{};
  std::vector<double> limits{};  // by row

  int32_t add_variable(double variable_cost, bool integer = true) {
    cost.push_back(variable_cost);
    is_integer.push_back(integer);
    return static_cast<int32_t>(cost.size()) - 1;
  }
  void add_row(std::vector<BoxTerm> terms, double limit) {
    rows.push_back(std::move(terms));
    limits.push_back(limit);
  }
};

struct BoxBound {
  double bound = 0;
  int64_t iterations = 0;
  bool converged = false;  // the bound is within 1e-6 of the optimum, relatively
};

// A lower bound on the optimum; the best of all prices tried. limits.nodes: iterations. Ends
// early where the bound reaches `enough`.
BoxBound lower_bound(const BoxProgram& program, const Limits& limits, double enough);

}  // namespace tidemark::planner::remat
