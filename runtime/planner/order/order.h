// Orders operators to minimise the peak of live bytes.
//
// One operator runs at a time. While it runs, its inputs, outputs and workspace are live, as is
// every value already written and still to be used.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/limits.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner {

struct OrderOptions {
  Limits limits;
  // Searches to close the gap between a good order and the bound. Off: no search.
  bool search = true;
  // Below this relative distance from the bound, only short searches run.
  double good_gap = 0.005;
};

struct Order {
  std::vector<OpId> order;
  Bytes load{0};   // peak_load() of it
  Bytes bound{0};  // no order has less, in place or not
  std::string method;
  int64_t nodes = 0;
};

// The best of program order, LESCEA, and a search under falling budgets, which stops at the
// bound or a limit. Never worse than program order or LESCEA. REQUIRES: check_problem() passes.
Order plan_order(const Problem& problem, const OrderOptions& options = {});

// Least storage change first (LESCEA; Han et al., 2006): runs the ready operator after which
// the fewest bytes live; ties in program order. O((ops + uses) log ops).
std::vector<OpId> lescea(const Problem& problem);

// The order in which the problem lists operators, if valid; else the topological order closest
// to it.
std::vector<OpId> program_order(const Problem& problem);

// A bound on every order's load. For each operator: the bytes that its ancestors wrote and that
// it or its descendants use live whenever it runs; the bound is the maximum over operators.
// O(ops * values / 64) words. Above kMaxOpsForBound operators, only the bytes an operator
// touches are counted.
inline constexpr size_t kMaxOpsForBound = 20'000;
Bytes load_bound(const Problem& problem);

}  // namespace tidemark::planner
