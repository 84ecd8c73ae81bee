// OLLA, section 4.1: when an operator can run, and when a tensor is of use.
//
//   SPAN(v) = [ASAP(v), ALAP(v)], by the longest paths to it and from it             (10)
//   MUL(e)  = [ASAP(src(e)), the last ALAP of a sink]: outside P[e,t] = 0            (11)
//   P[e,t]  = 1 from ALAP(src(e)) + 1 to the last ASAP of a sink                     (12)
//
// Loses nothing.
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/papers/olla/graph.h"

namespace tidemark::planner::olla {

struct Spans {
  int steps = 0;                // timesteps are 0 .. steps - 1
  std::vector<int> asap, alap;  // per operator; both included
  // Per tensor: P[e,t] may be 1 in [first, last], and is 1 in [forced_first, forced_last];
  // empty where the end is before the begin.
  std::vector<int> first, last, forced_first, forced_last;
};

// `reduce` off: each operator may run at any timestep and each tensor be preserved at any, but
// for what the problem itself says (there at the start, kept at the end).
// REQUIRES: steps is at least the graph's depth, depth().
Spans make_spans(const Graph& graph, int steps, bool reduce);

// Operators on the longest path: the least number of timesteps.
int depth(const Graph& graph);

}  // namespace tidemark::planner::olla
