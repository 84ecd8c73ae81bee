// Offsets for buffers of known size and lifetime, with the arena as low as possible.
//
//   offset
//     ^   +-----------+
//     |   |     2     |   +---+        a buffer is a rectangle: [begin, end) in time by
//     |   +---+-------+---+ 3 |        [offset, offset + size) in space; two that share a time
//     |   | 0 |     1     |   |        share no byte
//     +---+---+-----------+---+--> time
//
// The height of a layout is its highest end. The max load, the largest sum of sizes live at one
// time, is a lower bound, not always reachable. Units of time are the caller's.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/planner/limits.h"

namespace tidemark::planner {

struct Buffer {
  int64_t begin = 0;
  int64_t end = 0;  // half-open; an empty lifetime overlaps nothing
  Bytes size{0};
};

// One offset per buffer, in the buffers' order.
using Offsets = std::vector<Offset>;

// Buffers of size 0 or of an empty lifetime take no space; their offset is 0.
Bytes max_load(const std::vector<Buffer>& buffers);
Bytes height(const std::vector<Buffer>& buffers, const Offsets& offsets);

struct LifetimeEvent {
  int64_t time;
  bool begins;
  int buffer;
};

// The begin and the end of each buffer, by time. At one time ends come first (lifetimes are
// half-open), and then the buffers' order counts.
std::vector<LifetimeEvent> lifetime_events(const std::vector<Buffer>& buffers);

struct LayoutOptions {
  Limits limits;
  // The search stops at this height, and looks for no other. 0: as low as possible, down to the
  // max load.
  Bytes target{0};
  bool exact = true;  // off: heuristics only
};

struct Layout {
  Offsets offsets;
  Bytes height{0};
  Bytes bound{0};  // no layout is lower
  std::string method;
  int64_t nodes = 0;  // used by the searches
  bool optimal() const { return height == bound; }
};

// Returns the best heuristic layout, improved by search while it is above the target and limits
// allow: by SkylineSearch, and for up to ExactSearch::kMaxBuffers by ExactSearch too. Never
// higher than any heuristic suited to the number of buffers. Deterministic for the same
// buffers, seed and node budget unless the deadline ends it. REQUIRES: sizes >= 0, begin <=
// end, the sum of sizes fits in 63 bits (see check_buffers()).
Layout plan_layout(const std::vector<Buffer>& buffers, const LayoutOptions& options = {});

// Throws UsageError, naming the buffer by position, if these requirements are not met.
void check_buffers(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner
