// OLLA, section 4.1: when an operator can run, and when a tensor is needed.
//
//   SPAN(v) = [ASAP(v), ALAP(v)], by the longest paths to it and from it             (10)
//   MUL(e)  = [ASAP(src(e)), the last ALAP of a sink]: outside P[e,t] = 0            (11)
//   P[e,t]  = 1 from ALAP(src(e)) + 1 to the last ASAP of a sink                     (12)
//
// Lossless.
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

// `reduce` off: each operator may run and each tensor be preserved at any timestep, except as
// the problem itself says (exists at the start, kept at the end). REQUIRES: `steps` is at least
// depth() of the graph.
Spans make_spans(const Graph& graph, int steps, bool reduce);

// Operators on the longest path: the minimum number of timesteps.
int depth(const Graph& graph);

}  // namespace tidemark::planner::olla
