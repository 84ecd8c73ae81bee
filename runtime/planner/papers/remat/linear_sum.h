// A constant plus variables with factors, to write the papers' sums down as they are printed.
//
// Threads: values, no state.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner::remat {

struct LinearSum {
  double constant = 0;
  std::vector<Term> terms{};

  static LinearSum of(int variable, double factor = 1) { return {0, {{variable, factor}}}; }
  bool is_zero() const { return constant == 0 && terms.empty(); }
  LinearSum& add(const LinearSum& other, double factor = 1) {
    if (factor == 0) return *this;
    constant += factor * other.constant;
    for (const Term& term : other.terms) {
      terms.push_back({term.variable, factor * term.factor});
    }
    return *this;
  }
};

// lower <= sum <= upper. Terms of one variable are joined. A row without variables is left out
// if it holds; if not, it stays as a row that no solution satisfies.
inline void add_row(Program& program, const char* name, LinearSum sum, double lower,
                    double upper) {
  std::sort(sum.terms.begin(), sum.terms.end(),
            [](const Term& a, const Term& b) { return a.variable < b.variable; });
  Row row{.name = name, .lower = lower - sum.constant, .upper = upper - sum.constant};
  for (const Term& term : sum.terms) {
    if (!row.terms.empty() && row.terms.back().variable == term.variable) {
      row.terms.back().factor += term.factor;
    } else {
      row.terms.push_back(term);
    }
  }
  std::erase_if(row.terms, [](const Term& term) { return term.factor == 0; });
  if (row.terms.empty()) {
    if (row.lower <= 0 && row.upper >= 0) return;
    // A variable that is never 1, but would have to be.
    row.terms.push_back({program.add_variable({.name = "none", .lower = 0, .upper = 0}), 1});
    row.lower = 1;
    row.upper = kInfinity;
  }
  program.add_row(std::move(row));
}

}  // namespace tidemark::planner::remat
