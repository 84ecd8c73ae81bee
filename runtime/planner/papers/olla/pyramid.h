// OLLA, section 4.5 (algorithm 5): places for activations before the program is solved.
//
// The earlier an activation is created, the later it is freed, so they are stacked: the one
// that lives longest at the bottom, on it the longest of those that live within its life, and
// so on.
//
//   offset
//     ^      +---+
//     |    +-+---+--+
//     |  +-+--------+-+        the others go around it
//     |  +------------+
//     +------------------> time
//
// A heuristic: the best layout may have no such stack.
//
// Threads: functions without state.
#pragma once

#include <utility>
#include <vector>

#include "runtime/planner/layout/layout.h"

namespace tidemark::planner::olla {

// Buffers, from the bottom up, with their places. Of equally long ones the larger, then the
// first. Buffers without size or life are left out.
std::vector<std::pair<int, Offset>> pyramid(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner::olla
