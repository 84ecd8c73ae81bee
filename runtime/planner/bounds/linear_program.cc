#include "runtime/planner/bounds/linear_program.h"

#include <algorithm>
#include <cmath>

namespace tidemark::planner {

LinearProgram::Variable LinearProgram::variable(double upper, double price) {
  price_.push_back(price);
  upper_.push_back(upper);
  return static_cast<Variable>(price_.size() - 1);
}

void LinearProgram::at_most(std::span<const Term> terms, double limit) {
  for (const Term& term : terms) {
    column_.push_back(term.variable);
    coefficient_.push_back(term.coefficient);
  }
  begin_.push_back(static_cast<uint32_t>(column_.size()));
  limit_.push_back(limit);
}

double LinearProgram::bound(std::vector<double> duals) const {
  // An unbounded variable gains without limit once its rows pay it more than its price.
  std::vector<double> paid(variables(), 0.0);
  for (size_t r = 0; r < rows(); ++r) {
    for (uint32_t t = begin_[r]; t < begin_[r + 1]; ++t) {
      if (upper_[column_[t]] == kUnbounded) paid[column_[t]] -= duals[r] * coefficient_[t];
    }
  }
  double bound = 0;
  std::vector<double> reduced(price_);
  for (size_t r = 0; r < rows(); ++r) {
    for (uint32_t t = begin_[r]; t < begin_[r + 1]; ++t) {
      const Variable v = column_[t];
      if (upper_[v] == kUnbounded && paid[v] > price_[v]) duals[r] *= price_[v] / paid[v];
    }
    bound -= duals[r] * limit_[r];
    for (uint32_t t = begin_[r]; t < begin_[r + 1]; ++t) {
      reduced[column_[t]] += duals[r] * coefficient_[t];
    }
  }
  for (size_t v = 0; v < variables(); ++v) {
    if (upper_[v] != kUnbounded) bound += std::min(0.0, reduced[v]) * upper_[v];
  }
  return bound;
}

class FirstOrderMethod {
 public:
  explicit FirstOrderMethod(const LinearProgram& program)
      : p_(program),
        x_(p_.variables(), 0.0),
        y_(p_.rows(), 0.0),
        gradient_(p_.variables()),
        step_x_(p_.variables(), 0.0),
        step_y_(p_.rows(), 0.0),
        sum_x_(p_.variables(), 0.0),
        sum_y_(p_.rows(), 0.0) {
    for (size_t r = 0; r < p_.rows(); ++r) {
      for (uint32_t t = p_.begin_[r]; t < p_.begin_[r + 1]; ++t) {
        step_x_[p_.column_[t]] += std::abs(p_.coefficient_[t]);
        step_y_[r] += std::abs(p_.coefficient_[t]);
      }
    }
    for (double& step : step_x_) step = step > 0 ? 1 / step : 1;
    for (double& step : step_y_) step = step > 0 ? 1 / step : 1;
    double prices = 0, limits = 0;
    for (size_t v = 0; v < p_.variables(); ++v)
      prices += p_.price_[v] * p_.price_[v] * step_x_[v];
    for (size_t r = 0; r < p_.rows(); ++r) limits += p_.limit_[r] * p_.limit_[r] * step_y_[r];
    if (prices > 0 && limits > 0) weight_ = std::sqrt(prices / limits);
  }

  double run(const BoundEffort& effort) {
    double best = std::max(0.0, p_.bound(y_));
    std::vector<double> start_x = x_, start_y = y_;
    for (int64_t passes = 0; passes < effort.passes;) {
      if (effort.stop && effort.stop->load(std::memory_order_relaxed)) break;
      for (int i = 0; i < kRound; ++i) iterate();
      count_ += kRound;
      passes += 2 * kRound + 2;
      std::vector<double> mean = sum_y_;
      for (double& value : mean) value /= count_;
      const double now = p_.bound(y_), averaged = p_.bound(mean);
      best = std::max({best, now, averaged});
      if (count_ < next_restart_) continue;
      // Go on from the average, where that is better, with weights as the two sides moved.
      if (averaged >= now) {
        for (size_t v = 0; v < x_.size(); ++v) x_[v] = sum_x_[v] / count_;
        y_ = mean;
      }
      balance(start_x, start_y);
      start_x = x_, start_y = y_;
      std::fill(sum_x_.begin(), sum_x_.end(), 0.0);
      std::fill(sum_y_.begin(), sum_y_.end(), 0.0);
      count_ = 0;
    }
    return best;
  }

 private:
  static constexpr int kRound = 20;
  static constexpr double kGrowth = 1.3;

  void iterate() {
    gradient_ = p_.price_;
    for (size_t r = 0; r < p_.rows(); ++r) {
      if (y_[r] == 0) continue;
      for (uint32_t t = p_.begin_[r]; t < p_.begin_[r + 1]; ++t) {
        gradient_[p_.column_[t]] += y_[r] * p_.coefficient_[t];
      }
    }
    // From here on gradient_ holds 2 x' - x.
    for (size_t v = 0; v < x_.size(); ++v) {
      const double old = x_[v];
      x_[v] = std::clamp(old - step_x_[v] / weight_ * gradient_[v], 0.0, p_.upper_[v]);
      gradient_[v] = 2 * x_[v] - old;
      sum_x_[v] += x_[v];
    }
    for (size_t r = 0; r < p_.rows(); ++r) {
      double excess = -p_.limit_[r];
      for (uint32_t t = p_.begin_[r]; t < p_.begin_[r + 1]; ++t) {
        excess += p_.coefficient_[t] * gradient_[p_.column_[t]];
      }
      y_[r] = std::max(0.0, y_[r] + step_y_[r] * weight_ * excess);
      sum_y_[r] += y_[r];
    }
  }

  void balance(const std::vector<double>& start_x, const std::vector<double>& start_y) {
    double x = 0, y = 0;
    for (size_t v = 0; v < x_.size(); ++v) {
      const double d = x_[v] - start_x[v];
      x += d * d / step_x_[v];
    }
    for (size_t r = 0; r < y_.size(); ++r) {
      const double d = y_[r] - start_y[r];
      y += d * d / step_y_[r];
    }
    if (x > 0 && y > 0) weight_ = std::sqrt(weight_ * std::sqrt(y / x));
    next_restart_ = std::max(next_restart_ * kGrowth, next_restart_ + kRound);
  }

  const LinearProgram& p_;
  std::vector<double> x_, y_, gradient_;
  std::vector<double> step_x_, step_y_;
  std::vector<double> sum_x_, sum_y_;
  double weight_ = 1;
  double count_ = 0;
  double next_restart_ = 4 * kRound;
};

double best_bound(const LinearProgram& program, const BoundEffort& effort) {
  return FirstOrderMethod(program).run(effort);
}

}  // namespace tidemark::planner
