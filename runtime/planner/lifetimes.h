// When each storage and workspace lives, given the order of operators.
//
//   position   0    1    2    3            y is written at 0 and read at 2: [0, 3).
//   order      A    B    C    D            Whatever A writes and nobody reads lives in [0, 1).
//   y          |--------------|
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

// One for each storage that is not an alias, in order of id, then one for each workspace above
// 0, in order of operator; offsets are 0. A storage lives from its first writer (or the start)
// to the last use of any of its aliases (or the end).
// REQUIRES: check_problem() passes, `order` is a permutation of the operators.
std::vector<Placement> lifetimes(const Problem& problem, const std::vector<OpId>& order);

// Pairs of the problem that can be in place in this order, each storage giving its place once
// and taking one once, both of one size; the largest first.
std::vector<InPlace> usable_in_place(const Problem& problem,
                                     const std::vector<Placement>& lifetimes,
                                     const std::vector<OpId>& order);

// Placements, in-place ones merged, as rectangles to lay out.
struct Blocks {
  std::vector<Buffer> buffers;
  std::vector<size_t> block_of;  // per placement
};
Blocks to_blocks(const std::vector<Placement>& placements,
                 const std::vector<InPlace>& in_place);

// Most bytes live at one position: max_load() of the above.
Bytes peak_load(const Problem& problem, const std::vector<OpId>& order);

}  // namespace tidemark::planner
