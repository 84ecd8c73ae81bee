// Divides a step into parts that are planned together (ROAM, section IV-C, Algorithm 1).
//
// A subgraph is a piece of the forward pass with the corresponding piece of the backward pass:
// segments [forward_begin, forward_end) and [backward_begin, backward_end). Subgraphs are
// nested; the innermost is around the turn.
//
//   segments     0   1   2   3 | 4   5   6   7
//                            [-+-]                 first independent subgraph
//                    [-----]       [---]           the next
//                [--]                   [--]
//
// An independent subgraph (IG) is one whose tensors are not used outside after it, except
// outputs of its outer boundary operators and values read when the step is over. An update that
// waits holds its gradient, so all between is in one IG. Algorithm 1 moves both boundaries
// outwards by one operator until they form an IG. As the passes are seldom equally long, here
// only the boundary moves that prevents an IG. An IG of more than `node_limit` operators is
// split at its insensitive operators into dependent subgraphs (DG).
//
// Threads: values; functions without state.
#pragma once

#include <vector>

#include "runtime/planner/roam/phases.h"

namespace tidemark::planner::roam {

struct SubgraphNode {
  int forward_begin = 0, forward_end = 0, backward_begin = 0, backward_end = 0;
  std::vector<int> children;  // innermost first

  bool has(int segment) const {
    return (segment >= forward_begin && segment < forward_end) ||
           (segment >= backward_begin && segment < backward_end);
  }
};

struct SubgraphTree {
  std::vector<SubgraphNode> nodes;  // root first: the whole step
  std::vector<int> leaves;          // innermost first; each segment is in one
};

struct TreeOptions {
  // Maximum operators of a leaf; a piece between two insensitive operators is never split. The
  // paper gives no value; its solver handles some dozens.
  int node_limit = 100;
  // Off: updates neither count as operators nor join subgraphs, so that gradients leave theirs.
  bool updates = true;
  // Not in the paper: merges neighbouring independent subgraphs that are small together.
  // Tensors passed between them are then laid out with both.
  bool merge = false;
};

SubgraphTree make_subgraph_tree(const OrderGraph& graph, const Phases& phases,
                                const TreeOptions& options = {});

}  // namespace tidemark::planner::roam
