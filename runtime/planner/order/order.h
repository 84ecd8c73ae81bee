// In which order operators run, so that the most bytes live at one time are few.
//
// One operator runs at a time. While it runs, its inputs, its outputs and its workspace are
// live, and whatever was written and is still to be used.
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
  // Beyond a good order and a bound: search that may close the gap between them. Off: neither.
  bool search = true;
  // Below this distance from the bound, relative to it, only short searches are tried.
  double good_gap = 0.005;
};

struct Order {
  std::vector<OpId> order;
  Bytes load{0};   // peak_load() of it
  Bytes bound{0};  // no order has less, in place or not
  std::string method;
  int64_t nodes = 0;
};

// The best of program order, LESCEA, and a search under falling budgets that stops at the bound
// or a limit. Never worse than program order or LESCEA. REQUIRES: check_problem() passes.
Order plan_order(const Problem& problem, const OrderOptions& options = {});

// Least storage change first (LESCEA; Han et al., 2006): of the operators that can run, the one
// after which the fewest bytes live; ties in program order. O((ops + uses) log ops).
std::vector<OpId> lescea(const Problem& problem);

// The order in which the problem lists operators, where that is one; else the topological order
// next to it.
std::vector<OpId> program_order(const Problem& problem);

// Bytes that live whenever some operator runs, in whatever order: what its ancestors wrote and
// it or its descendants use. The most of these over operators bounds every order's load.
// O(ops * values / 64) words; above kMaxOpsForBound operators each is bounded by what it
// touches alone.
inline constexpr size_t kMaxOpsForBound = 20'000;
Bytes load_bound(const Problem& problem);

}  // namespace tidemark::planner
