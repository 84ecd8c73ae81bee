// The solver for leaves of the subgraph tree (ROAM, section IV-D).
//
// The paper gives each leaf to an integer program: papers/roam_programs.h. The default is our
// exact search, which solves the same problem without a solver. Any function can replace it:
//
//   options.leaves.order = [](const Problem& leaf, const Limits& limits) { ... };
//
// The caller checks the form of the answers; a suboptimal answer only costs memory.
//
// Threads: solvers are called from several threads at once and must not share mutable data. For
// repeatable plans, a solver must give the same answer for the same leaf, regardless of time.
#pragma once

#include <functional>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/limits.h"
#include "runtime/planner/problem.h"

namespace tidemark::planner::roam {

// A problem with only the leaf's operators. A storage is at_start if it was written before,
// at_end if it is used later; storages that live throughout are omitted. Returns a permutation
// of the operators that respects `after`.
using OrderLeafSolver = std::function<std::vector<OpId>(const Problem&, const Limits&)>;

// Per operator: its timestep, from 0 on. Operators of one timestep run at the same time, on
// streams of their own; what one of them uses lives throughout.
using TimestepLeafSolver = std::function<std::vector<int>(const Problem&, const Limits&)>;

struct LayoutLeaf {
  std::vector<Buffer> buffers;
  // The highest allowed end per buffer; activations lie in [0, sum of their sizes).
  std::vector<Bytes> ceilings;
};
using LayoutLeafSolver = std::function<Offsets(const LayoutLeaf&, const Limits&)>;

struct LeafSolvers {
  OrderLeafSolver order;
  LayoutLeafSolver layout;
  // If given, replaces `order`: the plan is for several streams (the paper's ROAM-MS).
  TimestepLeafSolver timesteps;
};

// Our exact searches: plan_order() and ExactSearch. At a limit, the best answer so far; the
// fallback layout has activations by lifetime, the longest lowest, and the rest by size.
LeafSolvers exact_leaves();

// That fallback.
Offsets stacked(const LayoutLeaf& leaf);

// Places buffers at their lowest free offsets, in the order of `waiting`, around those already
// placed.
void place_around(const std::vector<Buffer>& buffers, const std::vector<size_t>& waiting,
                  std::vector<bool>& placed, Offsets& offsets);

}  // namespace tidemark::planner::roam
