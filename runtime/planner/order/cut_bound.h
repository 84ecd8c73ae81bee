// A bound on the load by minimum cuts: what must live while an operator runs, whatever has run
// before it.
//
// When v runs, a set D of operators has: one that is closed (with an operator it has all those
// before it), has the ancestors of v, and has neither v nor its descendants. The load is then
// what v touches and what D has begun and not ended with:
//
//   cut(v) = touched(v) + min over D of  sum of size(x), x begun in D and used outside of D
//
// load_bound() takes of that sum what is in it for every D. The least over D is a minimum cut,
// operators of D on the source's side:
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
  int64_t load = 0;   // holds for each order, in place or not
  int64_t nodes = 0;  // of work done, as much as a step of search each
};

// cut(v), or less if a limit strikes: a flow that is not yet the largest bounds the cut too.
CutBound cut_bound_at(const OrderGraph& graph, OpId op, int64_t node_limit,
                      const Stopwatch& watch);

// The most of `known` and of cut(v) over operators for which it could be more, those first for
// which it could be most. `upper`: per operator, the load while it runs in some order.
// O(operators + uses) and a flow each.
CutBound cut_bound(const OrderGraph& graph, const std::vector<int64_t>& upper, int64_t known,
                   int64_t node_limit, const Stopwatch& watch);

}  // namespace tidemark::planner
