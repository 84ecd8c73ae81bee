// A training step as ROAM sees it: forward, backward, updates (ROAM, sections III-A and IV-A).
//
// - The trunk lies between the first and the last operator of the longest path, which leads
//   through the forward and the backward pass. Its memory-insensitive operators are those
//   that come before or after every other one of the trunk, so each has one timestep in any
//   order. The independent segments lie between them.
// - Inputs of the trunk that do not depend on its first operator (labels, masks) belong to
//   the first segment that needs them; the paper has all inputs "fed in at the same time".
// - A weight-update branch, from a gradient to the parameter, is used only by optimizers. It
//   floats: it may run in any segment from the one in which its gradients are available. What
//   prepares the optimizer's state for it (the decay of Adam's moments) belongs to it.
// - Other operators off the trunk (a weight's gradient as an operator of its own, statistics)
//   belong to the first segment in which they can run. The paper's graphs have none.
// - Operators after everything else, updates included (a read at the step's end), go last.
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

// The operators of one weight update, connected by their values.
struct UpdateBranch {
  std::vector<OpId> ops;     // in topological order
  std::vector<OpId> makers;  // operators off the trunk that only make its gradients
  OpId first = kNone;        // first of `ops` that uses a gradient
  int ready = 0;             // first segment in which all of it can run
  int64_t gradients = 0;     // bytes of its inputs from the backward pass
  int64_t most_memory = 0;   // peak of live bytes while it runs alone, gradients included
};

struct Phases {
  std::vector<OpId> topological;
  std::vector<OpId> insensitive;  // in their order; insensitive[k] begins segment k + 1
  // Per operator: the number of insensitive ones before it, including itself. For an operator
  // in a branch, or after one, the least possible number.
  std::vector<int> segment;
  std::vector<bool> floats;    // per operator: whether it is in a branch
  std::vector<bool> epilogue;  // per operator: whether it comes after all else
  std::vector<UpdateBranch> branches;
  int turn = 0;  // first backward segment; segments() if there is no backward pass

  int segments() const { return static_cast<int>(insensitive.size()) + 1; }
  bool is_insensitive(OpId op) const {
    return segment[op] > 0 && insensitive[segment[op] - 1] == op;
  }
};

// O(operators + uses), except that branches take as many passes as the longest one has
// operators.
Phases find_phases(const Problem& problem, const OrderGraph& graph);

}  // namespace tidemark::planner::roam
