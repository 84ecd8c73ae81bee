// Where buffers lie in an arena that is full, or nearly: a few of them move, at times chosen.
//
// A layout in which each buffer pinned where it began may need more than the largest load; one
// in which buffers may move needs no more, as holes can be joined. Within a device a byte moved
// costs little, but not nothing: the fewer the better, and none is best.
//
//   offset
//     ^  +---+--+------+
//     |  | a |  |  d   |      a and c have ended. d needs both their places when it begins, so
//     |  +---+--+      |      b moves down then; its two places may overlap.
//     |  |  b   +------+
//     |  +---+--+  b   |      At a time: first what ends then is gone, then the moves of that
//     |  | c |  |      |      time are made in turn, then what begins then is placed.
//     +--+---+--+------+--> time
//
// Threads: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/planner/layout/layout.h"
#include "runtime/planner/limits.h"

namespace tidemark::planner {

struct MovingProblem {
  static constexpr Bytes kNever{std::numeric_limits<int64_t>::max()};
  // In [begin, end) it must not be moved: something that does not wait reads or writes it. Or
  // it may, if that is waited for: from clock[time] to `until`.
  struct PinnedInterval {
    size_t buffer = 0;
    int64_t begin = 0;
    int64_t end = 0;
    Bytes until = kNever;
  };

  std::vector<Buffer> buffers;  // their sizes are multiples of kAlignment
  std::vector<PinnedInterval>
      pinned;  // in any order; one for all its life and kNever, if it may not move
  // One for each buffer. What begins at the earliest of all times begins there. What lives
  // until the latest should lie there at the end: who repeats all this would have to put it
  // back.
  std::vector<std::optional<Offset>> preferred_offsets;
  Bytes capacity{0};
  // By time, as what could be moved until then, a wait being as bad as moving for as long.
  // REQUIRES: it is not empty if a stay has an end to wait for; these begin at 0 at least.
  std::vector<Bytes> clock;
};

// To a place that is free but for the buffer's own, which it may overlap if `to` is lower.
struct Move {
  int64_t time = 0;
  size_t buffer = 0;
  Offset to;
};

struct MovingLayout {
  Offsets offsets;          // where each begins; 0 for those that take no space or no time
  std::vector<Move> moves;  // by time; those of one time one after the other
  Bytes moved{0};           // by the moves, and by putting back what does not end at home
};

// The layout that was found with the least `moved`, where each move counts as some bytes more,
// and as what could be moved while it waits. None if none was found: the load is above the
// capacity, or what must stay is in the way. Every pass through time takes as many of
// limits.nodes as there are buffers, and the layout is the same for the same seed and nodes as
// long as the deadline does not strike; without a limit on nodes, so many passes are made as
// are of use. Of several that begin at one time, but for the earliest, one may find another in
// its way: better that each begins at a time of its own. REQUIRES: preferred_offsets are
// multiples of kAlignment and within the capacity; those of buffers that are there at the
// earliest time do not overlap.
std::optional<MovingLayout> lay_out_moving(const MovingProblem& problem,
                                           const Limits& limits = {});

}  // namespace tidemark::planner
