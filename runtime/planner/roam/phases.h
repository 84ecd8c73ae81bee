// A training step as ROAM sees it: forward, backward, updates (ROAM, sections III-A and IV-A).
//
// - The trunk is what lies between the first and the last operator of the longest path, which
//   leads through the forward and the backward pass. Its memory-insensitive operators are those
//   that come before or after every other one of it, so that each has one timestep whatever the
//   order. The independent segments lie between them.
// - What feeds the trunk and does not depend on its first operator (labels, masks) belongs to
//   the segment that first needs it; the paper has all inputs "fed in at the same time".
// - A weight-update branch is what only optimizers use: from a gradient to the parameter. It
//   floats: it may run in any segment from the one in which its gradients are there.
// - What else hangs off the trunk (a weight's gradient as an operator of its own, statistics)
//   belongs to the segment in which it can first run. The paper's graphs have none.
// - What comes after everything, updates too (a read at the end of the step), is put last.
//
//   segment         0      1      2   |   3      4      5        m1 .. m5: insensitive, each
//   the trunk       ->(m1)-[]-(m2)-[]-(m3)-[]-(m4)-[]-(m5)-[]        first of its segment
//                                     ^ turn: the first segment of the backward pass
//
// The backward pass begins at the last insensitive operator that every gradient depends on.
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/order/graph.h"
#include "runtime/planner/problem.h"

namespace tidemark::planner::roam {

// The operators of one weight update, joined by what they pass on.
struct UpdateBranch {
  std::vector<OpId> ops;    // in topological order
  int ready = 0;            // segment from which on all of it can run
  int64_t gradients = 0;    // bytes that it takes from the backward pass
  int64_t most_memory = 0;  // bytes live at most while it runs alone, gradients included
};

struct Phases {
  std::vector<OpId> topological;
  std::vector<OpId> insensitive;  // in their order; insensitive[k] begins segment k + 1
  // Per operator: insensitive ones that come before it, itself counted; of an operator in a
  // branch, and of those after it, the least that is possible.
  std::vector<int> segment;
  std::vector<bool> floats;    // per operator: it is in a branch
  std::vector<bool> epilogue;  // per operator: it comes after all else, updates too
  std::vector<UpdateBranch> branches;
  int turn = 0;  // first backward segment; segments() where there is no backward pass

  int segments() const { return static_cast<int>(insensitive.size()) + 1; }
  bool is_insensitive(OpId op) const {
    return segment[op] > 0 && insensitive[segment[op] - 1] == op;
  }
};

// O(operators + uses), but for branches that are found in as many passes as one is long.
Phases find_phases(const Problem& problem, const OrderGraph& graph);

}  // namespace tidemark::planner::roam
