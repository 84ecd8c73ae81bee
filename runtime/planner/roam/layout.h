// Each tensor's offset, given the order (ROAM, section IV-B).
//
// Each subgraph (a leaf of the tree) is laid out separately (8), then all are concatenated (9):
//
//   base_i = base_{i-1} + sum of the activations of m_{i-1},   m_i[e] += base_i
//
// starting with the subgraph whose activations live longest, so that shorter-lived ones lie on
// top (as section IV-B says; the numbering of (9) is reversed). To waste little, the
// activations of a subgraph lie below all else in it, side by side.
//
//   offset |      |t |            t: temporary buffers of the inner subgraph
//          |    | a1 |            a1: its activations
//          | t| | a0      |  |t   a0: activations of the outer subgraph, whose own temporary
//          |                          buffers lie where a1 is later
//          +---------------------> time
//
// A tensor used in several subgraphs is laid out in one of them. A tensor made in the forward
// pass is laid out in the subgraph that frees it (COFI), so that later buffers can reuse its
// space. A tensor made in the backward pass is laid out in the subgraph that makes it (CIFO).
// Other subgraphs ignore it (COFO). Tensors that live throughout lie below everything.
//
// If tensors then overlap, some of them are placed again around all others, which stay where
// they are. The paper re-assigns "smaller sizes and shorter lifetimes" by "well-defined
// techniques". Either those that overlap a larger one are placed again, or all temporary
// buffers among them, in three orders; the lowest of these layouts is taken.
//
// Threads: as many as requested; leaves share no data.
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
  Limits limits;             // nodes: per leaf; seconds: for all leaves
  bool divide_time = false;  // among the leaves (roam.h)
};

// The order's positions, by leaf and pass.
struct Timeline {
  std::vector<int> leaf;         // per position: index in SubgraphTree::leaves
  std::vector<bool> is_forward;  // per position
  int leaves = 0;
};

Offsets lay_out(const std::vector<Buffer>& buffers, const Timeline& timeline,
                const LayoutLeafSolver& solver, const ConcatenationOptions& options);

}  // namespace tidemark::planner::roam
