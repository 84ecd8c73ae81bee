#include "examples/compare/overhead.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace tidemark::compare {
namespace {

// The largest k for which the k-th smallest and the k-th largest of n values enclose the median
// of their distribution with a confidence of 95 %; 1 if there is none.
size_t sign_test_rank(size_t n) {
  double term = std::pow(0.5, static_cast<double>(n)),
         below = 0;  // of the binomial distribution
  size_t k = 0;
  while (k < n && below + term <= 0.025) {
    below += term;
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return std::max<size_t>(k, 1);
}

std::optional<Overhead> overhead_of(std::vector<double> ratios, bool exact) {
  if (ratios.empty()) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  const size_t n = ratios.size(), rank = sign_test_rank(n);
  return Overhead{.median = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2 - 1,
                  .low = ratios[rank - 1] - 1,
                  .high = ratios[n - rank] - 1,
                  .steps = static_cast<int64_t>(n),
                  .exact = exact};
}

double ratio(Nanos time, Nanos reference) {
  return static_cast<double>(time.count()) / static_cast<double>(reference.count());
}

}  // namespace

Nanos median_time(const std::vector<TimedStep>& steps) {
  std::vector<Nanos> times;
  times.reserve(steps.size());
  for (const TimedStep& step : steps) times.push_back(step.time);
  const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

std::optional<Overhead> measured_overhead(const std::vector<TimedStep>& lane,
                                          const std::vector<TimedStep>& reference) {
  std::vector<double> ratios;
  for (const TimedStep& step : lane) {
    const auto same = std::find_if(reference.begin(), reference.end(), [&](const TimedStep& r) {
      return r.step == step.step && r.time > Nanos(0);
    });
    if (same != reference.end()) ratios.push_back(ratio(step.time, same->time));
  }
  return overhead_of(std::move(ratios), /*exact=*/false);
}

std::optional<Overhead> simulated_overhead(const std::vector<TimedStep>& lane,
                                           Nanos reference) {
  std::vector<double> ratios;
  ratios.reserve(lane.size());
  for (const TimedStep& step : lane) ratios.push_back(ratio(step.time, reference));
  return overhead_of(std::move(ratios), /*exact=*/true);
}

std::string describe(const std::optional<Overhead>& overhead, bool with_spread) {
  if (!overhead) return "-";
  if (!overhead->known()) return "measuring";
  if (overhead->within_noise() && !with_spread) return "within noise";
  if (overhead->exact || !with_spread) return fmt::format("{:+.1f} %", 100 * overhead->median);
  return fmt::format("{}{:+.1f} % ({:+.0f} to {:+.0f})",
                     overhead->within_noise() ? "within noise: " : "", 100 * overhead->median,
                     100 * overhead->low, 100 * overhead->high);
}

}  // namespace tidemark::compare
