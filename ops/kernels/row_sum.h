// Sums over a row for the CPU, the same for every instruction set and number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/kernels/instruction_sets.h"

namespace tidemark {

// In float in this many lanes, and in double over runs of this many elements.
inline constexpr int64_t kSumLanes = 32;
inline constexpr int64_t kSumRun = 4096;

TIDEMARK_INLINE double add_lanes(const float* lanes) {
  double total = 0;
  for (int64_t lane = 0; lane < kSumLanes; ++lane) total += lanes[lane];
  return total;
}

// The sum of term(i), i in [0, n). Term::operator() is TIDEMARK_INLINE, which a lambda is not.
template <class Term>
TIDEMARK_INLINE double sum_over_row(int64_t n, Term term) {
  double total = 0;
  for (int64_t i = 0; i < n;) {
    const int64_t end = std::min(n, i + kSumRun);
    float lanes[kSumLanes] = {};
    for (; i + kSumLanes <= end; i += kSumLanes) {
      for (int64_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += term(i + lane);
    }
    for (int64_t lane = 0; i < end; ++i, ++lane) lanes[lane] += term(i);
    total += add_lanes(lanes);
  }
  return total;
}

}  // namespace tidemark
