// OLLA, section 4.3: control edges that make weight updates run early.
//
// An update frees its gradient, so there is no use in putting it off. An anchor is sought: an
// operator above the update in the levels of the graph (so that no cycle comes about) and far
// from its end (so that it runs early). The search begins at the operators that the update
// takes its inputs from: forwards from each of them, the first operators above the update's
// level; of all those the one with the highest backward level. If there is none, from those
// before them, and so on (the paper's functions 3 and 4).
//
// Not lossless in general: an update that needs a workspace, say, may be better off later.
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

// At most one per update: an operator that uses a parameter and something else, and writes
// nothing but new versions of parameters and optimizer state.
std::vector<ControlEdge> early_updates(const Problem& problem);

// The problem with these edges added. REQUIRES: they are early_updates() of it.
Problem with_edges(Problem problem, const std::vector<ControlEdge>& edges);

}  // namespace tidemark::planner::olla
