// OLLA, section 4.5 (algorithm 5): fixes offsets of activations before the program is solved.
//
// The earlier an activation is created, the later it is freed. Activations are therefore
// stacked: the longest-lived at the bottom, on it the longest-lived within its life, and so on.
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

// Buffers from the bottom up, with their offsets. Among equal lifetimes the larger goes first,
// then the earlier. Buffers without size or life are omitted. O(n log n).
std::vector<std::pair<int, Offset>> pyramid(const std::vector<Buffer>& buffers);

}  // namespace tidemark::planner::olla
