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

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

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
  size_t terms() const { return column_.size(); }

  // The bound that these duals give, one for each row. Scales down those of a row where an
  // unbounded variable would make the bound worthless. REQUIRES: duals >= 0.
  double bound(std::vector<double> duals) const;

 private:
  friend class FirstOrderMethod;

  std::vector<double> price_, upper_;
  // Rows: terms [begin_[r], begin_[r + 1]).
  std::vector<uint32_t> begin_{0};
  std::vector<Variable> column_;
  std::vector<double> coefficient_;
  std::vector<double> limit_;
};

struct BoundEffort {
  int64_t passes = 4000;  // over the program's terms
  const std::atomic<bool>* stop = nullptr;
};

// The best bound that a primal-dual hybrid gradient method finds (Chambolle and Pock, 2011,
// with the step sizes of Pock and Chambolle, 2011, and restarts from averages as in PDLP,
// Applegate et al., 2021). 0 if every price is >= 0 and nothing better is found. Deterministic.
double best_bound(const LinearProgram& program, const BoundEffort& effort = {});

}  // namespace tidemark::planner
