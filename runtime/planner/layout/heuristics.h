// Layouts by one rule, without search. All are valid; none is guaranteed optimal.
//
// Costs are for n buffers, of which p pairs overlap in time.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

// The order in which first_fit() places buffers, largest first.
enum class FitOrder : uint8_t {
  kSize,      // greedy by size (Pisarchyk and Lee, 2020)
  kLifetime,  // longest first
  kArea,      // size times lifetime
  kLoad,      // by the largest load during its life, then by area
};

// Each buffer, in that order, at the lowest offset free for all its life. Found by TimeTree, in
// about O(n log^2 n).
Offsets first_fit(const std::vector<Buffer>& buffers, FitOrder order);
template <FitOrder order>
Offsets first_fit(const std::vector<Buffer>& buffers) {
  return first_fit(buffers, order);
}

// A layout no higher than `capacity` that keeps `fixed` offsets. Other buffers are placed by
// first fit. Buffers that end too high go first in the next round, for a number of rounds in
// each order. `reluctant` holds the same buffers with equal or later ends: where space allows,
// the next buffer on the same bytes begins after that end, else as late as possible. None: not
// found. O((n + p) log n) per round where space is ample; each round takes n of limits.nodes.
// REQUIRES: all vectors have one entry per buffer; fixed buffers do not overlap.
std::optional<Offsets> fit_within(const std::vector<Buffer>& buffers,
                                  const std::vector<Buffer>& reluctant,
                                  const std::vector<std::optional<Offset>>& fixed,
                                  Bytes capacity, const Limits& limits = {});

// An online allocator's layout: each buffer, when it begins, takes the smallest hole that holds
// it, ties to the lowest; freed space joins its neighbours. The arena grows at its end. O(n log
// n), so suited to a million buffers.
Offsets best_fit_online(const std::vector<Buffer>& buffers);

// Lowest place, longest first (LLFB; Sekiyama et al., 2018); see skyline_fit.h. Lifetimes count
// in sections there, so a buffer may lie in a segment which is a little shorter. About
// O(n log n).
Offsets lowest_longest(const std::vector<Buffer>& buffers);

struct Heuristic {
  const char* name;
  Offsets (*place)(const std::vector<Buffer>&);
  // plan_layout() does not run it on more buffers, for which it would take many seconds.
  size_t max_buffers = SIZE_MAX;
};

inline constexpr size_t kMaxForFirstFit = 200'000;

// All heuristics. plan_layout() tries them in this order, and each is a method of plan_graph.
inline constexpr Heuristic kHeuristics[] = {
    {"best fit", best_fit_online},
    {"LLFB", lowest_longest},
    {"greedy by size", first_fit<FitOrder::kSize>, kMaxForFirstFit},
    {"greedy by area", first_fit<FitOrder::kArea>, kMaxForFirstFit},
    {"greedy by load", first_fit<FitOrder::kLoad>, kMaxForFirstFit},
    {"greedy by lifetime", first_fit<FitOrder::kLifetime>, kMaxForFirstFit},
};

// The number of pairs of buffers that overlap in time, counted up to `limit`. O(n log n).
int64_t count_meetings(const std::vector<Buffer>& buffers, int64_t limit);

// Whether a buffer takes no space or no time: it is placed at 0 and constrains no other.
inline bool is_empty(const Buffer& b) { return b.size == Bytes(0) || b.begin == b.end; }

}  // namespace tidemark::planner
