// Who solves a leaf of the subgraph tree (ROAM, section IV-D).
//
// The paper hands each leaf to an integer program. Here a leaf goes to a function, so that a
// program can take the place of the default without a change elsewhere:
//
//   options.leaves.order = [](const Problem& leaf, const Limits& limits) { ... };
//
// Both answers are checked for form by the caller; what is less than the best only costs
// memory.
//
// Threads: solvers are called from several at a time and must not share what they change. They
// must give the same for the same leaf, whatever the clock says, if plans are to be repeatable.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/limits.h"
#include "runtime/planner/problem.h"

namespace tidemark::planner::roam {

// The leaf's operators alone. A storage is at_start if it was written before, at_end if it is
// used later; what lives from before to after is left out. Returns a permutation of the
// operators that keeps `after`.
using OrderLeafSolver = std::function<std::vector<OpId>(const Problem&, const Limits&)>;

struct LayoutLeaf {
  std::vector<Buffer> buffers;
  // Per buffer: it must end there or below; activations lie in [0, sum of their sizes).
  std::vector<Bytes> ceilings;
};
using LayoutLeafSolver = std::function<Offsets(const LayoutLeaf&, const Limits&)>;

struct LeafSolvers {
  OrderLeafSolver order;
  LayoutLeafSolver layout;
};

// Our own exact searches: plan_order() and ExactSearch. Where a limit strikes, the best so far;
// for a layout at the worst activations by lifetime, the longest lowest, and the rest by size.
LeafSolvers exact_leaves();

// Lowest places that are free, in the order of `waiting`, around the buffers that are placed.
void place_around(const std::vector<Buffer>& buffers, const std::vector<size_t>& waiting,
                  std::vector<bool>& placed, Offsets& offsets);

}  // namespace tidemark::planner::roam
