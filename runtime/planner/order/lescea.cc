#include <algorithm>
#include <queue>
#include <tuple>

#include "runtime/planner/order/order.h"
#include "runtime/planner/order/passes.h"

namespace tidemark::planner {

std::vector<OpId> lescea(const OrderGraph& graph) {
  OrderState state(graph);
  std::vector<OpId> changed;
  state.changed = &changed;
  // Entries go stale when an operator's growth changes; then there is a newer one.
  using Entry = std::pair<int64_t, OpId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (const OpId op : state.ready()) queue.emplace(state.growth(op), op);
  std::vector<int> waits(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    waits[i] = static_cast<int>(graph.ops[i].before.size());
  }
  while (state.count() < graph.size()) {
    const auto [growth, op] = queue.top();
    queue.pop();
    if (state.done(op) || growth != state.growth(op)) continue;
    changed.clear();
    state.run(op);
    for (const OpId other : changed) {
      if (waits[other] == 0) queue.emplace(state.growth(other), other);
    }
    for (const OpId next : graph.ops[op].next) {
      if (--waits[next] == 0) queue.emplace(state.growth(next), next);
    }
  }
  return state.path();
}

std::vector<OpId> lescea(const Problem& problem) { return lescea(OrderGraph(problem)); }

std::vector<OpId> program_order(const Problem& problem) {
  const auto before = predecessors(problem);
  std::vector<std::vector<OpId>> next(before.size());
  std::vector<size_t> waits(before.size());
  std::priority_queue<OpId, std::vector<OpId>, std::greater<>> ready;
  for (size_t i = 0; i < before.size(); ++i) {
    waits[i] = before[i].size();
    for (const OpId p : before[i]) next[p].push_back(static_cast<OpId>(i));
    if (waits[i] == 0) ready.push(static_cast<OpId>(i));
  }
  std::vector<OpId> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const OpId n : next[order.back()]) {
      if (--waits[n] == 0) ready.push(n);
    }
  }
  return order;
}

std::vector<int64_t> loads_in(const OrderGraph& graph, const std::vector<OpId>& order) {
  OrderState state(graph);
  std::vector<int64_t> loads(graph.size(), 0);
  for (const OpId op : order) {
    loads[op] = state.transient(op);
    state.run(op);
  }
  return loads;
}

int64_t load_of(const OrderGraph& graph, const std::vector<OpId>& order) {
  const std::vector<int64_t> loads = loads_in(graph, order);
  return loads.empty() ? 0
                       : std::max<int64_t>(0, *std::max_element(loads.begin(), loads.end()));
}

}  // namespace tidemark::planner
