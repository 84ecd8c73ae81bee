// Layouts found by one rule, without search. All are valid; none is optimal.
//
// Costs are for n buffers of which p pairs meet in time.
//
// Threads: functions without state.
#pragma once

#include <optional>
#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner {

// The order in which first_fit() places buffers, largest first.
enum class FitOrder : uint8_t {
  kSize,      // greedy by size (Pisarchyk and Lee, 2020)
  kLifetime,  // longest first
  kArea,      // size times lifetime
  kLoad,      // by the largest load that it meets, then by area
};

// Each buffer, in that order, at the lowest place free for all its life. O((n + p) log n).
Offsets first_fit(const std::vector<Buffer>& buffers, FitOrder order);

// A layout no higher than `capacity`, in which those that are `fixed` lie where that says: the
// others first fit, and what ends too high goes first the next time, for so many rounds in each
// order. `reluctant` has the same buffers with ends as late or later: where there is room, what
// lies on the same bytes next begins after that; where there is none, as late as possible.
// None: not found. O((n + p) log n) a round where there is room; of limits.nodes each takes n.
// REQUIRES: all have one for each buffer; those fixed do not overlap.
std::optional<Offsets> fit_within(const std::vector<Buffer>& buffers,
                                  const std::vector<Buffer>& reluctant,
                                  const std::vector<std::optional<Offset>>& fixed,
                                  Bytes capacity, const Limits& limits = {});

// What an allocator does that sees one event at a time: at its begin each buffer takes the
// smallest hole that holds it, ties to the lowest; freed space joins its neighbours. The arena
// grows at its end. O(n log n), so it is the way for a million buffers.
Offsets best_fit_online(const std::vector<Buffer>& buffers);

// Lowest place, longest first (LLFB; Sekiyama et al., 2018): the skyline's lowest stretch takes
// the longest buffer that lies wholly in it, or is raised to its lower neighbour if there is
// none. O(n^2) at worst.
Offsets lowest_longest(const std::vector<Buffer>& buffers);

// Pairs of buffers that meet in time, counted up to `limit`. O(n log n).
int64_t count_meetings(const std::vector<Buffer>& buffers, int64_t limit);

// True if a buffer takes no space or no time: it is placed at 0 and hinders no other.
inline bool is_empty(const Buffer& b) { return b.size == Bytes(0) || b.begin == b.end; }

}  // namespace tidemark::planner
