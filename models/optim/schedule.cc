#include "models/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tidemark {

std::optional<ScheduleKind> parse_schedule(std::string_view name) {
  if (name == "constant") return ScheduleKind::kConstant;
  if (name == "linear") return ScheduleKind::kLinear;
  if (name == "cosine") return ScheduleKind::kCosine;
  if (name == "multistep") return ScheduleKind::kMultiStep;
  return std::nullopt;
}

double learning_rate(const RateSchedule& s, int64_t step) {
  if (step < s.warmup_steps) {
    return s.rate * static_cast<double>(step) / static_cast<double>(s.warmup_steps);
  }
  if (s.kind == ScheduleKind::kConstant) return s.rate;
  const int64_t length = std::max<int64_t>(1, s.total_steps - s.warmup_steps);
  if (s.kind == ScheduleKind::kMultiStep) {
    const int64_t thirds = std::min<int64_t>(2, 3 * (step - s.warmup_steps) / length);
    return thirds == 0 ? s.rate : s.rate / (thirds == 1 ? 10 : 100);
  }
  const double done =
      std::min(1.0, static_cast<double>(step - s.warmup_steps) / static_cast<double>(length));
  const double left = s.kind == ScheduleKind::kLinear
                          ? 1 - done
                          : 0.5 * (1 + std::cos(std::numbers::pi * done));
  return s.final_rate + (s.rate - s.final_rate) * left;
}

}  // namespace tidemark
