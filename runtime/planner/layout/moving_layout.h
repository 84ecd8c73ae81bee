// Offsets for buffers in a full or nearly full arena: a few buffers move, at planned times.
//
// A layout in which buffers never move may need more than the largest load. If buffers may
// move, it need not, because holes can be joined. Moving a byte within a device costs little:
// the fewer the better, and none is best.
//
//   offset
//     ^  +---+--+------+
//     |  | a |  |  d   |      a and c have ended. d needs both their places when it begins, so
//     |  +---+--+      |      b moves down then; its two places may overlap.
//     |  |  b   +------+
//     |  +---+--+  b   |      At each time: ended buffers are freed, then that time's moves
//     |  | c |  |      |      run in order, then new buffers are placed.
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
  // In [begin, end) the buffer must not move, because asynchronous work reads or writes it.
  // With `until` set, it may move after waiting from clock[time] to `until`.
  struct PinnedInterval {
    size_t buffer = 0;
    int64_t begin = 0;
    int64_t end = 0;
    Bytes until = kNever;
  };

  std::vector<Buffer> buffers;  // sizes are multiples of kAlignment
  std::vector<PinnedInterval>
      pinned;  // in any order; one for its whole life with kNever if it may not move
  // One per buffer. A buffer that begins at the earliest time begins at its preferred offset. A
  // buffer that lives until the latest time should end there, because repeating the step would
  // otherwise have to move it back.
  std::vector<std::optional<Offset>> preferred_offsets;
  Bytes capacity{0};
  // What a move costs beside its bytes, as bytes that could be moved meanwhile; 0: little.
  Bytes fee{0};
  // Per time: the bytes that could be moved until then, so that waits and moves have one unit.
  // REQUIRES: not empty if an interval in `pinned` has an end to wait for; such intervals begin
  // at 0 or later.
  std::vector<Bytes> clock;
};

// Buffers that are small beside the capacity lie apart from the others, where they never move:
// at the lower end if they prefer offsets below those of all others, and else, without a
// preferred offset, at the upper end.
constexpr bool is_small(Bytes size, Bytes capacity) { return size * 2000 < capacity; }

// A move to space that is free except for the buffer's own, which it may overlap if `to` is
// lower.
struct Move {
  int64_t time = 0;
  size_t buffer = 0;
  Offset to;
};

struct MovingLayout {
  Offsets offsets;          // at each begin; 0 for buffers without space or time
  std::vector<Move> moves;  // by time, then in order of execution
  Bytes moved{0};           // by moves, and by putting back misplaced buffers at the end
};

// The layout found with the least `moved`; among those with small buffers apart, if there is
// any, for which the search may take limits.nodes, and else as many again for the others. Each
// move counts as some more bytes, and each wait as the bytes that could be moved meanwhile.
// None if no layout was found: the load exceeds the capacity, or immovable buffers are in the
// way. Each pass through time takes as many of limits.nodes as there are buffers. Deterministic
// for the same seed and nodes unless the deadline ends it; without a node limit, passes
// continue while they are useful. Buffers that begin at one time (other than the earliest) may
// block each other, so distinct begins are better. REQUIRES: preferred_offsets are multiples of
// kAlignment and within the capacity; those of buffers at the earliest time do not overlap.
std::optional<MovingLayout> lay_out_moving(const MovingProblem& problem,
                                           const Limits& limits = {});

}  // namespace tidemark::planner
