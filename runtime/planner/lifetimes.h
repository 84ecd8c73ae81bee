// The lifetimes of storages and workspaces, given the order of operators.
//
//   position   0    1    2    3            y is written at 0 and read at 2: [0, 3).
//   order      A    B    C    D            An output of A that is never read lives in [0, 1).
//   y          |--------------|
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

// One placement per storage that is not an alias, in order of id, then one per workspace above
// 0, in order of operator; offsets are 0. A storage lives from its first writer (or the start)
// to the last use of any alias (or the end). REQUIRES: check_problem() passes, `order` is a
// permutation of the operators.
std::vector<Placement> lifetimes(const Problem& problem, const std::vector<OpId>& order);

// The problem's pairs that can be in place in this order, largest first. Both have one size;
// each storage gives its space at most once and takes space at most once.
std::vector<InPlace> usable_in_place(const Problem& problem,
                                     const std::vector<Placement>& lifetimes,
                                     const std::vector<OpId>& order);

// Placements as rectangles to lay out, with in-place pairs merged.
struct Blocks {
  std::vector<Buffer> buffers;
  std::vector<size_t> block_of;  // per placement
};
Blocks to_blocks(const std::vector<Placement>& placements,
                 const std::vector<InPlace>& in_place);

// Most bytes live at one position: max_load() of these lifetimes.
Bytes peak_load(const Problem& problem, const std::vector<OpId>& order);

}  // namespace tidemark::planner
