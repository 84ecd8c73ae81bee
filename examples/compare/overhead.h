// How much longer a lane's steps take than steps without a budget, and whether that is more
// than chance.
//
// On a real device a step's time varies by far more than many a policy costs. Steps of two
// lanes with the same number ran one after the other, so each pair gives a ratio that what
// slows the machine down for a while hardly touches. The overhead is the median of the last
// pairs; its spread is the 95 % confidence interval of a median by the sign test, which assumes
// nothing about the distribution: of 25 sorted ratios, the 8th to the 18th.
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

// So many of a lane's last steps are kept to compare.
inline constexpr size_t kRecentSteps = 25;

Nanos median_time(const std::vector<TimedStep>& steps);  // REQUIRES: not empty

struct Overhead {
  double median = 0;         // 0.25: a quarter longer
  double low = 0, high = 0;  // around it
  int64_t steps = 0;         // that were compared
  bool exact = false;        // simulated times do not vary by chance

  // With fewer measured steps not even their whole range is a 95 % interval.
  static constexpr int64_t kFewestSteps = 6;
  bool known() const { return exact || steps >= kFewestSteps; }
  bool within_noise() const { return !exact && known() && low <= 0 && high >= 0; }
};

// Of steps with the same number in both; nothing if there are none.
std::optional<Overhead> measured_overhead(const std::vector<TimedStep>& lane,
                                          const std::vector<TimedStep>& reference);
// Over a step of the simulator that takes `reference`, which is positive.
std::optional<Overhead> simulated_overhead(const std::vector<TimedStep>& lane, Nanos reference);

// "+12.3 %", "measuring", "within noise"; with_spread: "+12.3 % (10 to 15)".
std::string describe(const std::optional<Overhead>& overhead, bool with_spread);

}  // namespace tidemark::compare
