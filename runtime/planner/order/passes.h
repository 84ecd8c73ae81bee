// The pieces that plan_order() is put together from.
//
// Threads: functions without state.
#pragma once

#include <optional>
#include <vector>

#include "runtime/planner/limits.h"
#include "runtime/planner/order/graph.h"

namespace tidemark::planner {

// Per operator: bytes that live whenever it runs; see load_bound().
std::vector<int64_t> forced_loads(const OrderGraph& graph);

// Per operator: bytes live while it runs in `order`.
std::vector<int64_t> loads_in(const OrderGraph& graph, const std::vector<OpId>& order);
// The most of them.
int64_t load_of(const OrderGraph& graph, const std::vector<OpId>& order);

// Program order as in `position` among equals.
std::vector<OpId> lescea(const OrderGraph& graph);

enum class SearchEnd : uint8_t {
  kFound,
  kExhausted,  // no order stays within the budget
  kLimit,
};

// Depth first over sets of operators done, for an order whose load is at most `budget`. An
// operator that frees no less than it takes, and fits, is run at once: whatever order there is
// from here, with it moved to the front it needs no more (what is live is submodular in what
// has run). Sets that failed are remembered.
class OrderSearch {
 public:
  explicit OrderSearch(const OrderGraph& graph) : graph_(graph) {}
  // `prefer`: of operators with equal growth the one with the lower number goes first.
  SearchEnd run(int64_t budget, const std::vector<int>& prefer, int64_t node_limit,
                const Stopwatch& watch);
  const std::vector<OpId>& order() const { return order_; }  // REQUIRES: kFound
  int64_t nodes() const { return nodes_; }                   // of all runs

 private:
  const OrderGraph& graph_;
  std::vector<OpId> order_;
  int64_t nodes_ = 0;
};

}  // namespace tidemark::planner
