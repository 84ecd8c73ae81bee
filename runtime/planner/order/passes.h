// The parts of plan_order().
//
// Threads: functions without state.
#pragma once

#include <optional>
#include <vector>

#include "runtime/planner/limits.h"
#include "runtime/planner/order/graph.h"

namespace tidemark::planner {

// Per operator: bytes that live whenever it runs, in any order; see load_bound().
std::vector<int64_t> forced_loads(const OrderGraph& graph);

// Per operator: bytes live while it runs in `order`.
std::vector<int64_t> loads_in(const OrderGraph& graph, const std::vector<OpId>& order);
// The maximum of loads_in().
int64_t load_of(const OrderGraph& graph, const std::vector<OpId>& order);

// LESCEA: runs the ready operator with the least growth; ties go to the lower number.
std::vector<OpId> lescea(const OrderGraph& graph);

struct OrderRule {
  const char* name;
  std::vector<OpId> (*order)(const OrderGraph&);
};

// Orders by one rule, without search. plan_order() tries each on the graph and on the reversed
// graph, and each is a method of plan_graph.
inline constexpr OrderRule kOrderRules[] = {
    {"LESCEA", lescea},
};

enum class SearchEnd : uint8_t {
  kFound,
  kExhausted,  // no order stays within the budget
  kLimit,
};

// Depth-first search over sets of operators run, for an order whose load is at most `budget`.
// An operator that fits and frees at least as much as it takes is run at once: moving it to the
// front never raises an order's load, because live bytes are submodular in the set of operators
// run. Failed sets are remembered.
class OrderSearch {
 public:
  explicit OrderSearch(const OrderGraph& graph) : graph_(graph) {}
  // `prefer`: among operators with equal growth, the lower number goes first.
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
