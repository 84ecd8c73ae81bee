// Step time and loss over a whole training, in a bounded number of points. When the series is
// full, neighbouring points are merged in pairs, and later points cover twice as many steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tidemark::compare {

class StepSeries {
 public:
  static constexpr size_t kMaxPoints = 160;

  // Means over `steps` steps, starting at `first`.
  struct Point {
    int64_t first = 0, steps = 0;
    double ms = 0;
    std::optional<double> loss;
  };

  void add(int64_t step, double ms, std::optional<double> loss) {
    if (!points_.empty() && points_.back().steps < stride_) {
      points_.back() = merged(points_.back(), {step, 1, ms, loss});
      return;
    }
    if (points_.size() == kMaxPoints) {
      for (size_t i = 0; i < kMaxPoints / 2; ++i) {
        points_[i] = merged(points_[2 * i], points_[2 * i + 1]);
      }
      points_.resize(kMaxPoints / 2);
      stride_ *= 2;
    }
    points_.push_back({step, 1, ms, loss});
  }
  // By step.
  const std::vector<Point>& points() const { return points_; }

 private:
  static Point merged(const Point& a, const Point& b) {
    const auto mean = [&](double x, double y) {
      return (x * static_cast<double>(a.steps) + y * static_cast<double>(b.steps)) /
             static_cast<double>(a.steps + b.steps);
    };
    Point point{a.first, a.steps + b.steps, mean(a.ms, b.ms), std::nullopt};
    if (a.loss && b.loss) point.loss = mean(*a.loss, *b.loss);
    return point;
  }

  std::vector<Point> points_;
  int64_t stride_ = 1;
};

}  // namespace tidemark::compare
