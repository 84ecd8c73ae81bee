// Linear programs, and lower bounds on their optimum that hold whatever the solver's accuracy.
//
//   minimise    sum of price[i] * x[i]
//   subject to  sum of coefficients * x <= limit, for each row
//               0 <= x[i] <= upper[i]
//
// Any non-negative price for each row (a dual) gives a lower bound: with the rows priced into
// the objective instead of enforced, each variable takes its better end. So a first-order
// method is enough, stopped at any time, and no solver is needed.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/planner/limits.h"

namespace tidemark::planner {

class LinearProgram {
 public:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  using Variable = uint32_t;
  struct Term {
    Variable variable;
    double coefficient;
  };

  // REQUIRES: `upper` > 0; a price >= 0 if unbounded. An unbounded variable's coefficients are
  // negative, and each of its rows has no other unbounded variable.
  Variable variable(double upper, double price);
  void at_most(std::span<const Term> terms, double limit);

  size_t variables() const { return price_.size(); }
  size_t rows() const { return limit_.size(); }
  double price(size_t v) const { return price_[v]; }
  double upper(size_t v) const { return upper_[v]; }
  double limit(size_t r) const { return limit_[r]; }
  std::span<const Term> row(size_t r) const {
    return {terms_.data() + begin_[r], terms_.data() + begin_[r + 1]};
  }

  // The bound that these duals give, one for each row, less what rounding may add to it. Scales
  // down those of a row where an unbounded variable would make the bound worthless.
  // REQUIRES: duals >= 0.
  double bound(std::vector<double> duals) const;

 private:
  std::vector<double> price_, upper_;
  std::vector<uint32_t> begin_{0};  // row r: terms [begin_[r], begin_[r + 1])
  std::vector<Term> terms_;
  std::vector<double> limit_;
};

struct LinearBound {
  double bound = 0;
  int64_t iterations = 0;
  bool converged = false;  // the bound is within 1e-6 of the optimum, relatively
};

// The best bound that a primal-dual hybrid gradient method finds (Chambolle and Pock, 2011,
// with the step sizes of Pock and Chambolle, 2011, and restarts from averages as in PDLP,
// Applegate et al., 2021). limits.nodes: iterations. Ends early where the bound reaches
// `enough`. Deterministic if `limits.nodes` ends it.
LinearBound best_bound(const LinearProgram& program, const Limits& limits,
                       double enough = LinearProgram::kUnbounded);

}  // namespace tidemark::planner
