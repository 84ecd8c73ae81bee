// Where buffers of known size and lifetime lie, so that the arena is as low as can be.
//
//   offset
//     ^   +-----------+
//     |   |     2     |   +---+        a buffer is a rectangle: [begin, end) in time by
//     |   +---+-------+---+ 3 |        [offset, offset + size) in space; two that share a time
//     |   | 0 |     1     |   |        share no byte
//     +---+---+-----------+---+--> time
//
// The height of a layout is its highest end; the max load, the largest sum of sizes live at one
// time, bounds it from below (though not always reachable). Units of time are the caller's.
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

// One per buffer, in their order.
using Offsets = std::vector<Offset>;

// Buffers of size 0 or of an empty lifetime take no space; their offset is 0.
Bytes max_load(const std::vector<Buffer>& buffers);
Bytes height(const std::vector<Buffer>& buffers, const Offsets& offsets);

struct LayoutOptions {
  Limits limits;
  // A height that is good enough: the search stops there. 0: the max load, which is the least.
  Bytes target{0};
  bool exact = true;  // off: the heuristics alone
};

struct Layout {
  Offsets offsets;
  Bytes height{0};
  Bytes bound{0};  // no layout is lower
  std::string method;
  int64_t nodes = 0;  // of the exact search
  bool optimal() const { return height == bound; }
};

// The best of the heuristics below, then exact search while it is above the target and limits
// allow. Never higher than any heuristic that the number of buffers allows. The same for the
// same buffers, seed and node budget as long as the deadline does not strike.
// REQUIRES: sizes >= 0, begin <= end, the sum of sizes fits in 63 bits (see check_buffers()).
Layout plan_layout(const std::vector<Buffer>& buffers, const LayoutOptions& options = {});

// Throws UsageError that names the buffer by its position, if the above is not met.
void check_buffers(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner
