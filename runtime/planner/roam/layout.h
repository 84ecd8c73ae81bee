// Where each tensor lies, given the order (ROAM, section IV-B).
//
// Each subgraph (a leaf of the tree) is laid out by itself (8), then they are put together (9):
//
//   base_i = base_{i-1} + sum of the activations of m_{i-1},   m_i[e] += base_i
//
// with the subgraph whose activations live longest first, so that the shorter lived lies on top
// (as section IV-B says; the numbering of (9) is the other way round). For this to waste
// little, the activations of a subgraph lie below all else in it, side by side.
//
//   offset |      |t |            t: temporary buffers of the inner subgraph
//          |    | a1 |            a1: its activations
//          | t| | a0      |  |t   a0: those of the outer one, whose buffers are where a1 is
//          later
//          +---------------------> time
//
// A tensor that is used in several subgraphs is laid out in one of them: what the forward pass
// makes, in the one that frees it (COFI), so that later buffers can lie where it was; what the
// backward pass makes, in the one that makes it (CIFO). Others take no notice of it (COFO).
// Where that leads to two in one place, the smaller of them, and of equals the shorter lived,
// is placed anew when all others are settled. What lives throughout lies under everything.
//
// Threads: as many as asked for; leaves share nothing.
#pragma once

#include <vector>

#include "runtime/planner/roam/leaf_solver.h"
#include "runtime/planner/roam/subgraph_tree.h"

namespace tidemark::planner::roam {

struct ConcatenationOptions {
  bool owners = true;             // off: each tensor is laid out where it is made
  bool activations_below = true;  // off: leaves are free to mix
  // Off: one leaf above the other, with no space in common and so without conflicts.
  bool concatenate = true;
  int threads = 1;
  Limits limits;  // of each leaf; the seconds, of all
};

// When and where things happen; a position is one in the order.
struct Timeline {
  std::vector<int> leaf;         // per position: index in SubgraphTree::leaves
  std::vector<bool> is_forward;  // per position
  int leaves = 0;
};

Offsets lay_out(const std::vector<Buffer>& buffers, const Timeline& timeline,
                const LayoutLeafSolver& solver, const ConcatenationOptions& options);

}  // namespace tidemark::planner::roam
