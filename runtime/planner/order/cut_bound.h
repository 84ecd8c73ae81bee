// Bounds the load by minimum cuts: bytes that must live while an operator runs, in any order.
//
// When v runs, let D be the set of operators that have run. D is closed under predecessors,
// contains the ancestors of v, and contains neither v nor its descendants. The load is the size
// of v's values plus the values that D has begun and not ended:
//
//   cut(v) = touched(v) + min over D of  sum of size(x), x begun in D and used outside of D
//
// load_bound() uses the part of that sum common to every D. The least sum over D is a minimum
// cut, with the operators of D on the source's side:
//
//   writer --size--> x --inf--> each user of x       x is paid for unless all its users are in
//   D op --inf--> each operator before it              D is closed
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/limits.h"
#include "runtime/planner/order/graph.h"

namespace tidemark::planner {

struct CutBound {
  int64_t load = 0;   // holds for every order, in place or not
  int64_t nodes = 0;  // work done, in units of a search step
};

// cut(v), or less if a limit is reached: an incomplete flow also bounds the cut.
CutBound cut_bound_at(const OrderGraph& graph, OpId op, int64_t node_limit,
                      const Stopwatch& watch);

// The maximum of `known` and of cut(v), over operators for which cut(v) could be larger, most
// promising first. `upper`: per operator, its load in some order. O(operators + uses) and one
// flow each.
CutBound cut_bound(const OrderGraph& graph, const std::vector<int64_t>& upper, int64_t known,
                   int64_t node_limit, const Stopwatch& watch);

}  // namespace tidemark::planner
