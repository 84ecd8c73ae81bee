// Which parts of a step are planned together (ROAM, section IV-C, Algorithm 1).
//
// A subgraph is a piece of the forward pass with the piece of the backward pass that undoes it:
// segments [forward_begin, forward_end) and [backward_begin, backward_end). They lie in each
// other like onion skins; the innermost is around the turn.
//
//   segments     0   1   2   3 | 4   5   6   7
//                            [-+-]                 first independent subgraph
//                    [-----]       [---]           the next
//                [--]                   [--]
//
// An independent subgraph (IG) is one after which no tensor that is used within (apart from
// what its outer boundary operators pass on, gradients on their way to an update, and what is
// read when the step is over) is used outside. Algorithm 1 moves both boundaries outwards by
// one operator until they form one; as the passes are seldom equally long, here the boundary
// moves that keeps them from it. One of more than `node_limit` operators is split at the
// insensitive operators in it into dependent subgraphs (DG).
//
// Threads: values; functions without state.
#pragma once

#include <vector>

#include "runtime/planner/roam/phases.h"

namespace tidemark::planner::roam {

struct SubgraphNode {
  int forward_begin = 0, forward_end = 0, backward_begin = 0, backward_end = 0;
  std::vector<int> children;  // the innermost first

  bool has(int segment) const {
    return (segment >= forward_begin && segment < forward_end) ||
           (segment >= backward_begin && segment < backward_end);
  }
};

struct SubgraphTree {
  std::vector<SubgraphNode> nodes;  // the root first: all of the step
  std::vector<int> leaves;          // the innermost first; each segment is in one
};

struct TreeOptions {
  // Operators of a leaf, floating updates not counted; a piece between two insensitive
  // operators is not split, however large. The paper gives no value; its solver takes some
  // dozens.
  int node_limit = 100;
  // Not in the paper: neighbouring independent subgraphs that are small together are one. What
  // passes between them is then laid out with both.
  bool merge = false;
};

SubgraphTree make_subgraph_tree(const OrderGraph& graph, const Phases& phases,
                                const TreeOptions& options = {});

}  // namespace tidemark::planner::roam
