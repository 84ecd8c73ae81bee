#include "runtime/planner/layout/skyline_search.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/mix.h"

namespace tidemark::planner {
namespace {

constexpr int kLogBits = 16;
constexpr int64_t kOctave = int64_t{1} << kLogBits;  // the logarithm of 2

// In units of 1 / kOctave, rounded down; the same everywhere, as floating point is not.
// REQUIRES: x > 0.
int64_t log_of(int64_t x) {
  const int whole = std::bit_width(static_cast<uint64_t>(x)) - 1;
  uint64_t y = whole > 31 ? static_cast<uint64_t>(x) >> (whole - 31)
                          : static_cast<uint64_t>(x) << (31 - whole);  // in [2^31, 2^32)
  int64_t log = whole;
  for (int k = 0; k < kLogBits; ++k) {
    y = y * y >> 31;
    const bool twice = y >> 32 != 0;
    log = 2 * log + (twice ? 1 : 0);
    if (twice) y /= 2;
  }
  return log;
}

}  // namespace

SkylineSearch::SkylineSearch(const std::vector<Buffer>& buffers, uint64_t seed)
    : buffers_(buffers),
      fit_(buffers),
      random_(mix(seed)),
      order_(longest_first(buffers)),
      log_size_(buffers.size()),
      log_life_(buffers.size()),
      log_sections_(buffers.size()),
      priority_(buffers.size()) {
  const SectionTimes& times = fit_.times();
  for (const int i : order_) {
    log_size_[i] = log_of(buffers[i].size.count());
    log_life_[i] = log_of(buffers[i].end - buffers[i].begin);
    log_sections_[i] = log_of(times.last[i] - times.first[i]);
  }
}

int64_t SkylineSearch::pick(int64_t n) {
  random_ = mix(random_);
  return static_cast<int64_t>(random_ % static_cast<uint64_t>(n));
}

// Picks are made one by one, as compilers evaluate operands in orders of their own.

// Between -most and most, most often near 0. REQUIRES: most > 0.
int64_t SkylineSearch::noise(int64_t most) {
  const int64_t up = pick(most + 1);
  return up - pick(most + 1);
}

void SkylineSearch::set_priorities(Weights weights, int64_t most_noise) {
  weights_ = weights;
  const std::vector<int64_t>& life = weights.in_sections ? log_sections_ : log_life_;
  for (const int i : order_) {
    priority_[i] = (kWhole - weights.size) * life[i] + weights.size * log_size_[i];
    if (most_noise > 0) priority_[i] += noise(most_noise) * kWhole;
  }
}

// The best order, with noise on some buffers that live with one that ends too high.
void SkylineSearch::shake(Bytes goal) {
  weights_ = best_weights_;
  priority_ = best_priority_;
  std::vector<int> high;
  for (const int i : order_) {
    if (offsets_[i] + buffers_[i].size > Offset() + goal) high.push_back(i);
  }
  if (high.empty()) return;
  const Buffer& peak = buffers_[high[pick(static_cast<int64_t>(high.size()))]];
  constexpr int64_t kShares[] = {3, 30, 300};  // of 1000
  constexpr int64_t kNoises[] = {kOctave / 8, kOctave, 4 * kOctave};
  const int64_t share = kShares[pick(3)], most = kNoises[pick(3)];
  for (const int i : order_) {
    if (buffers_[i].begin >= peak.end || peak.begin >= buffers_[i].end) continue;
    if (pick(1000) < share) priority_[i] += noise(most) * kWhole;
  }
}

void SkylineSearch::step(Bytes goal) {
  constexpr int64_t kSizeWeights[] = {0, 10, 50, 100, 200, 340, 512, 700, 900, kWhole};
  static_assert(2 * std::size(kSizeWeights) == kTableSteps);
  constexpr int64_t kNoises[] = {0, 0, kOctave / 64, kOctave / 16, kOctave / 4};
  if (steps_ < kTableSteps) {
    set_priorities({kSizeWeights[steps_ / 2], steps_ % 2 == 1}, 0);
  } else if (steps_ % 4 == 0) {
    const int64_t u = pick(kWhole + 1);
    const int64_t most_noise = kNoises[pick(std::size(kNoises))];
    const bool in_sections = pick(2) == 1;
    set_priorities({u * u / kWhole, in_sections}, most_noise);
  } else if (steps_ % 4 == 1) {
    Weights near = best_weights_;
    const int64_t scaled = near.size * (768 + pick(513)) / 1024;
    near.size = std::min(kWhole, scaled + pick(3));
    set_priorities(near, kNoises[pick(std::size(kNoises))]);
  } else {
    shake(goal);
  }
  std::vector<int> order = order_;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return priority_[a] > priority_[b]; });
  Offsets offsets = fit_.place(order);
  const Bytes top = planner::height(buffers_, offsets);
  if (steps_++ > 0 && top > height_) return;
  height_ = top;
  offsets_ = std::move(offsets);
  best_weights_ = weights_;
  best_priority_ = priority_;
}

}  // namespace tidemark::planner
