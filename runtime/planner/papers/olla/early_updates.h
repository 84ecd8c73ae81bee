// OLLA, section 4.3: control edges that make weight updates run early.
//
// An update frees its gradient, so delaying it is pointless. For each update an anchor is
// sought: an operator at a lower level of the graph (so no cycle arises) and far from the end
// (so it runs early). The search starts at the operators that make the update's inputs. It goes
// forwards from each one to the first operators above the update's level, and takes the one
// with the highest backward level. If none exists, it continues with their predecessors, and so
// on (the paper's functions 3 and 4).
//
// Not lossless in general: for example, an update that needs a workspace may be better off
// later.
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner::olla {

struct ControlEdge {
  OpId update = kNone;
  OpId anchor = kNone;  // runs after it
};

// At most one edge per update. An update is an operator that uses a parameter and another
// storage, and writes only new versions of parameters and optimizer state.
std::vector<ControlEdge> early_updates(const Problem& problem);

// The problem with these edges added. REQUIRES: `edges` are early_updates() of `problem`.
Problem with_edges(Problem problem, const std::vector<ControlEdge>& edges);

}  // namespace tidemark::planner::olla
