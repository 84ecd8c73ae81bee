#include "runtime/planner/remat/box_program.h"

#include <algorithm>
#include <cmath>

namespace tidemark::planner::remat {
namespace {

constexpr int64_t kCheckEvery = 40;   // iterations between bounds
constexpr double kClose = 1e-6;       // relative gap at which the method has converged
constexpr double kRestartFall = 0.2;  // a restart where the error fell to this part
constexpr double kStep = 0.95;        // below 1: convergence is proven there
// Rounding of sums of up to a million terms, relative to the terms: off the bound.
constexpr double kRounding = 1e-12;

// The rows as compressed rows and columns.
struct Matrix {
  std::vector<int32_t> begin, index;
  std::vector<double> factor;
};

Matrix transposed(const std::vector<std::vector<BoxTerm>>& rows, size_t columns) {
  Matrix result;
  result.begin.assign(columns + 1, 0);
  for (const auto& row : rows) {
    for (const BoxTerm& term : row) ++result.begin[term.variable + 1];
  }
  for (size_t k = 0; k < columns; ++k) result.begin[k + 1] += result.begin[k];
  result.index.resize(result.begin[columns]);
  result.factor.resize(result.begin[columns]);
  std::vector<int32_t> next(result.begin.begin(), result.begin.end() - 1);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (const BoxTerm& term : rows[r]) {
      const int32_t at = next[term.variable]++;
      result.index[at] = static_cast<int32_t>(r);
      result.factor[at] = term.factor;
    }
  }
  return result;
}

Matrix compressed(const std::vector<std::vector<BoxTerm>>& rows) {
  Matrix result;
  result.begin.push_back(0);
  for (const auto& row : rows) {
    for (const BoxTerm& term : row) {
      result.index.push_back(term.variable);
      result.factor.push_back(term.factor);
    }
    result.begin.push_back(static_cast<int32_t>(result.index.size()));
  }
  return result;
}

double dot(const Matrix& matrix, size_t line, const std::vector<double>& values) {
  double sum = 0;
  for (int32_t k = matrix.begin[line]; k < matrix.begin[line + 1]; ++k) {
    sum += matrix.factor[k] * values[matrix.index[k]];
  }
  return sum;
}

double norm1(const Matrix& matrix, size_t line) {
  double sum = 0;
  for (int32_t k = matrix.begin[line]; k < matrix.begin[line + 1]; ++k) {
    sum += std::abs(matrix.factor[k]);
  }
  return std::max(sum, 1e-12);
}

class PrimalDual {
 public:
  explicit PrimalDual(const BoxProgram& program)
      : program_(program),
        rows_(compressed(program.rows)),
        columns_(transposed(program.rows, program.cost.size())),
        x_(program.cost.size(), 0.5),
        y_(program.rows.size(), 0),
        x_sum_(x_.size(), 0),
        y_sum_(y_.size(), 0),
        x_step_(x_.size()),
        y_step_(y_.size()),
        x_start_(x_),
        y_start_(y_) {
    for (size_t j = 0; j < x_.size(); ++j) x_step_[j] = kStep / norm1(columns_, j);
    for (size_t r = 0; r < y_.size(); ++r) y_step_[r] = kStep / norm1(rows_, r);
    // Prices are of the size of the costs.
    double sum = 0;
    for (const double c : program.cost) sum += c;
    weight_ = std::max(sum / static_cast<double>(std::max<size_t>(x_.size(), 1)), 1e-9) * 10;
  }

  BoxBound run(const Limits& limits, double enough) {
    const Stopwatch watch(limits);
    BoxBound result;
    result.bound = bound(y_);
    double first_error = -1;
    while (result.iterations < limits.nodes && result.bound < enough) {
      for (int64_t k = 0; k < kCheckEvery; ++k) iterate();
      result.iterations += kCheckEvery;
      averages();
      const double average_bound = bound(y_average_), last_bound = bound(y_);
      result.bound = std::max({result.bound, average_bound, last_bound});
      const double error = primal_error(x_average_) + gap(x_average_, average_bound);
      if (error < kClose) {
        result.converged = true;
        break;
      }
      if (first_error < 0) first_error = error;
      if (error < kRestartFall * first_error || count_ > 40 * kCheckEvery) {
        restart();
        first_error = -1;
      }
      if (watch.expired()) break;
    }
    return result;
  }

 private:
  void iterate() {
    x_before_ = x_;
    for (size_t j = 0; j < x_.size(); ++j) {
      const double slope = program_.cost[j] + dot(columns_, j, y_);
      x_[j] = std::clamp(x_[j] - x_step_[j] / weight_ * slope, 0.0, 1.0);
      x_before_[j] = 2 * x_[j] - x_before_[j];
      x_sum_[j] += x_[j];
    }
    for (size_t r = 0; r < y_.size(); ++r) {
      const double over = dot(rows_, r, x_before_) - program_.limits[r];
      y_[r] = std::max(0.0, y_[r] + y_step_[r] * weight_ * over);
      y_sum_[r] += y_[r];
    }
    ++count_;
  }

  double bound(const std::vector<double>& prices) const {
    double sum = program_.constant, size = std::abs(sum);
    for (size_t r = 0; r < prices.size(); ++r) {
      sum -= prices[r] * program_.limits[r];
      size += std::abs(prices[r] * program_.limits[r]);
    }
    for (size_t j = 0; j < program_.cost.size(); ++j) {
      const double slope = program_.cost[j] + dot(columns_, j, prices);
      sum += std::min(0.0, slope);
      size += std::abs(slope);
    }
    return sum - kRounding * size;
  }

  double primal_error(const std::vector<double>& x) const {
    double most = 0;
    for (size_t r = 0; r < program_.limits.size(); ++r) {
      most = std::max(most, (dot(rows_, r, x) - program_.limits[r]) / norm1(rows_, r));
    }
    return most;
  }
  double gap(const std::vector<double>& x, double dual) const {
    double value = program_.constant;
    for (size_t j = 0; j < x.size(); ++j) value += program_.cost[j] * x[j];
    return std::abs(value - dual) / std::max(1e-12, std::abs(value));
  }

  void averages() {
    const auto count = static_cast<double>(std::max<int64_t>(count_, 1));
    x_average_.resize(x_.size());
    y_average_.resize(y_.size());
    for (size_t j = 0; j < x_.size(); ++j) x_average_[j] = x_sum_[j] / count;
    for (size_t r = 0; r < y_.size(); ++r) y_average_[r] = y_sum_[r] / count;
  }

  // Goes on from the averages, and balances the two step sizes by how far each side moved.
  void restart() {
    double moved_x = 0, moved_y = 0;
    for (size_t j = 0; j < x_.size(); ++j) {
      moved_x += (x_average_[j] - x_start_[j]) * (x_average_[j] - x_start_[j]) / x_step_[j];
    }
    for (size_t r = 0; r < y_.size(); ++r) {
      moved_y += (y_average_[r] - y_start_[r]) * (y_average_[r] - y_start_[r]) / y_step_[r];
    }
    if (moved_x > 1e-18 && moved_y > 1e-18) {
      weight_ =
          std::exp(0.5 * std::log(std::sqrt(moved_y / moved_x)) + 0.5 * std::log(weight_));
    }
    x_ = x_start_ = x_average_;
    y_ = y_start_ = y_average_;
    std::fill(x_sum_.begin(), x_sum_.end(), 0.0);
    std::fill(y_sum_.begin(), y_sum_.end(), 0.0);
    count_ = 0;
  }

  const BoxProgram& program_;
  Matrix rows_, columns_;
  std::vector<double> x_, y_, x_before_, x_sum_, y_sum_, x_average_, y_average_;
  std::vector<double> x_step_, y_step_, x_start_, y_start_;
  double weight_ = 1;  // price moved for a unit of value moved
  int64_t count_ = 0;  // iterations since the last restart
};

}  // namespace

BoxBound lower_bound(const BoxProgram& program, const Limits& limits, double enough) {
  return PrimalDual(program).run(limits, enough);
}

}  // namespace tidemark::planner::remat
