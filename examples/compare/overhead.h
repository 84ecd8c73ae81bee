// How much longer a lane's steps take than steps without a budget, and whether the difference
// is significant.
//
// On a real device, step times vary by far more than many policies cost. Steps of two lanes
// with the same number run one after the other, so a temporary slowdown of the machine hardly
// affects the ratio of such a pair. The overhead is the median ratio of the last pairs. Its
// spread is the 95 % confidence interval of a median by the sign test, which assumes no
// distribution: of 25 sorted ratios, the 8th to the 18th.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark::compare {

struct TimedStep {
  int64_t step = 0;
  Nanos time{0};
};

// Number of a lane's latest steps kept for the comparison.
inline constexpr size_t kRecentSteps = 25;

Nanos median_time(const std::vector<TimedStep>& steps);  // REQUIRES: not empty

struct Overhead {
  double median = 0;         // 0.25: a quarter longer
  double low = 0, high = 0;  // its confidence interval
  int64_t steps = 0;         // compared
  bool exact = false;        // simulated times do not vary by chance

  // With fewer steps, not even their full range is a 95 % interval.
  static constexpr int64_t kFewestSteps = 6;
  bool known() const { return exact || steps >= kFewestSteps; }
  bool within_noise() const { return !exact && known() && low <= 0 && high >= 0; }
};

// The overhead from steps with the same number in both; nullopt if there are none.
std::optional<Overhead> measured_overhead(const std::vector<TimedStep>& lane,
                                          const std::vector<TimedStep>& reference);
// The overhead over a simulated step that takes `reference`. REQUIRES: reference > 0.
std::optional<Overhead> simulated_overhead(const std::vector<TimedStep>& lane, Nanos reference);

// "+12.3 %", "measuring", "within noise"; with_spread: "+12.3 % (10 to 15)".
std::string describe(const std::optional<Overhead>& overhead, bool with_spread);

}  // namespace tidemark::compare
