#include "runtime/planner/bounds/linear_program.h"

#include <algorithm>
#include <cmath>

namespace tidemark::planner {
namespace {

constexpr int64_t kCheckEvery = 40;  // iterations between bounds
constexpr double kClose = 1e-6;      // relative gap at which the method has converged
constexpr double kStep = 0.95;       // below 1: convergence is proven there
// Iterations before the first restart, and from there on that many times as many.
constexpr double kFirstRestart = 80, kRestartGrowth = 1.3;
// What rounding may add to a sum of up to a million terms, relative to the terms.
constexpr double kRounding = 1e-12;

// The coefficients by row or by column, for sums along one.
struct Lines {
  std::vector<uint32_t> begin{0}, other;
  std::vector<double> coefficient;

  double dot(size_t line, const std::vector<double>& values) const {
    double sum = 0;
    for (uint32_t k = begin[line]; k < begin[line + 1]; ++k) {
      sum += coefficient[k] * values[other[k]];
    }
    return sum;
  }
  double step(size_t line) const {
    double norm = 0;
    for (uint32_t k = begin[line]; k < begin[line + 1]; ++k) norm += std::abs(coefficient[k]);
    return norm > 0 ? kStep / norm : 1;
  }
};

Lines by_row(const LinearProgram& program) {
  Lines lines;
  for (size_t r = 0; r < program.rows(); ++r) {
    for (const LinearProgram::Term& term : program.row(r)) {
      lines.other.push_back(term.variable);
      lines.coefficient.push_back(term.coefficient);
    }
    lines.begin.push_back(static_cast<uint32_t>(lines.other.size()));
  }
  return lines;
}

Lines by_column(const LinearProgram& program) {
  Lines lines;
  lines.begin.assign(program.variables() + 1, 0);
  for (size_t r = 0; r < program.rows(); ++r) {
    for (const LinearProgram::Term& term : program.row(r)) ++lines.begin[term.variable + 1];
  }
  for (size_t v = 0; v < program.variables(); ++v) lines.begin[v + 1] += lines.begin[v];
  lines.other.resize(lines.begin.back());
  lines.coefficient.resize(lines.begin.back());
  std::vector<uint32_t> next = lines.begin;
  for (size_t r = 0; r < program.rows(); ++r) {
    for (const LinearProgram::Term& term : program.row(r)) {
      const uint32_t at = next[term.variable]++;
      lines.other[at] = static_cast<uint32_t>(r);
      lines.coefficient[at] = term.coefficient;
    }
  }
  return lines;
}

// The values of one side, primal or dual, with what restarts need.
struct Iterate {
  std::vector<double> now, sum, average, start, step;

  explicit Iterate(const Lines& lines) {
    const size_t count = lines.begin.size() - 1;
    now = sum = average = start = std::vector<double>(count, 0.0);
    for (size_t k = 0; k < count; ++k) step.push_back(lines.step(k));
  }
  void find_average(int64_t count) {
    for (size_t k = 0; k < now.size(); ++k) average[k] = sum[k] / static_cast<double>(count);
  }
  // Returns how far the new start is from the last.
  double restart(bool from_average) {
    if (from_average) now = average;
    double moved = 0;
    for (size_t k = 0; k < now.size(); ++k) {
      moved += (now[k] - start[k]) * (now[k] - start[k]) / step[k];
    }
    start = now;
    std::fill(sum.begin(), sum.end(), 0.0);
    return std::sqrt(moved);
  }
};

class PrimalDual {
 public:
  explicit PrimalDual(const LinearProgram& program)
      : p_(program),
        rows_(by_row(program)),
        columns_(by_column(program)),
        x_(columns_),
        y_(rows_),
        ahead_(program.variables()) {
    double prices = 0, limits = 0;
    for (size_t v = 0; v < p_.variables(); ++v) {
      prices += p_.price(v) * p_.price(v) * x_.step[v];
    }
    for (size_t r = 0; r < p_.rows(); ++r) limits += p_.limit(r) * p_.limit(r) * y_.step[r];
    if (prices > 0 && limits > 0) weight_ = std::sqrt(prices / limits);
  }

  LinearBound run(const Limits& limits, double enough) {
    const Stopwatch watch(limits);
    LinearBound result;
    result.bound = p_.bound(y_.now);
    while (result.iterations < limits.nodes && result.bound < enough && !watch.expired()) {
      for (int64_t k = 0; k < kCheckEvery; ++k) iterate();
      count_ += kCheckEvery;
      result.iterations += kCheckEvery;
      x_.find_average(count_);
      y_.find_average(count_);
      const double averaged = p_.bound(y_.average), last = p_.bound(y_.now);
      result.bound = std::max({result.bound, averaged, last});
      result.converged = primal_error() + gap(averaged) < kClose;
      if (result.converged) break;
      if (static_cast<double>(count_) >= next_restart_) restart(averaged >= last);
    }
    return result;
  }

 private:
  void iterate() {
    for (size_t v = 0; v < x_.now.size(); ++v) {
      const double slope = p_.price(v) + columns_.dot(v, y_.now);
      const double old = x_.now[v];
      x_.now[v] = std::clamp(old - x_.step[v] / weight_ * slope, 0.0, p_.upper(v));
      ahead_[v] = 2 * x_.now[v] - old;
      x_.sum[v] += x_.now[v];
    }
    for (size_t r = 0; r < y_.now.size(); ++r) {
      const double excess = rows_.dot(r, ahead_) - p_.limit(r);
      y_.now[r] = std::max(0.0, y_.now[r] + y_.step[r] * weight_ * excess);
      y_.sum[r] += y_.now[r];
    }
  }

  double primal_error() const {
    double most = 0;
    for (size_t r = 0; r < p_.rows(); ++r) {
      most = std::max(most, (rows_.dot(r, x_.average) - p_.limit(r)) * y_.step[r]);
    }
    return most;
  }
  double gap(double bound) const {
    double value = 0;
    for (size_t v = 0; v < p_.variables(); ++v) value += p_.price(v) * x_.average[v];
    return std::abs(value - bound) / std::max(1e-12, std::abs(value));
  }

  // Goes on from the averages, or from where it is, and balances the two step sizes by how far
  // each side moved.
  void restart(bool from_average) {
    const double moved_x = x_.restart(from_average), moved_y = y_.restart(from_average);
    if (moved_x > 1e-9 && moved_y > 1e-9) weight_ = std::sqrt(weight_ * moved_y / moved_x);
    count_ = 0;
    next_restart_ *= kRestartGrowth;
  }

  const LinearProgram& p_;
  Lines rows_, columns_;
  Iterate x_, y_;
  std::vector<double> ahead_;  // 2 x - the x before
  double weight_ = 1;          // price moved for a unit of value moved
  int64_t count_ = 0;          // iterations since the last restart
  double next_restart_ = kFirstRestart;
};

}  // namespace

LinearProgram::Variable LinearProgram::variable(double upper, double price) {
  price_.push_back(price);
  upper_.push_back(upper);
  return static_cast<Variable>(price_.size() - 1);
}

void LinearProgram::at_most(std::span<const Term> terms, double limit) {
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  begin_.push_back(static_cast<uint32_t>(terms_.size()));
  limit_.push_back(limit);
}

double LinearProgram::bound(std::vector<double> duals) const {
  // An unbounded variable gains without limit once its rows pay it more than its price.
  std::vector<double> paid(variables(), 0.0);
  for (size_t r = 0; r < rows(); ++r) {
    for (const Term& term : row(r)) {
      const Variable v = term.variable;
      if (upper_[v] == kUnbounded) paid[v] -= duals[r] * term.coefficient;
    }
  }
  double bound = 0, size = 0;
  std::vector<double> reduced(price_);
  for (size_t r = 0; r < rows(); ++r) {
    for (const Term& term : row(r)) {
      const Variable v = term.variable;
      if (upper_[v] == kUnbounded && paid[v] > price_[v]) duals[r] *= price_[v] / paid[v];
    }
    bound -= duals[r] * limit_[r];
    size += std::abs(duals[r] * limit_[r]);
    for (const Term& term : row(r)) {
      const double part = duals[r] * term.coefficient;
      reduced[term.variable] += part;
      if (upper_[term.variable] != kUnbounded) size += std::abs(part) * upper_[term.variable];
    }
  }
  for (size_t v = 0; v < variables(); ++v) {
    if (upper_[v] != kUnbounded) bound += std::min(0.0, reduced[v]) * upper_[v];
  }
  return bound - kRounding * size;
}

LinearBound best_bound(const LinearProgram& program, const Limits& limits, double enough) {
  return PrimalDual(program).run(limits, enough);
}

}  // namespace tidemark::planner
