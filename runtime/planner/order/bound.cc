#include <algorithm>

#include "runtime/planner/order/bitset.h"
#include "runtime/planner/order/graph.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/order/passes.h"

namespace tidemark::planner {
namespace {

std::vector<OpId> topological(const OrderGraph& graph) {
  OrderState state(graph);
  while (!state.ready().empty()) state.run(state.ready().back());
  return state.path();
}

}  // namespace

std::vector<int64_t> forced_loads(const OrderGraph& graph) {
  const size_t count = graph.size();
  std::vector<int64_t> load(count, graph.resident);
  for (size_t i = 0; i < count; ++i) load[i] += graph.ops[i].workspace - graph.ops[i].in_place;
  if (count > kMaxOpsForBound) {
    for (const OrderGraph::Value& value : graph.values) {
      for (const OpId op : value.touchers) load[op] += value.size;
    }
    return load;
  }
  // Ancestors and descendants of each operator, itself included.
  const std::vector<OpId> order = topological(graph);
  std::vector<Bitset> up(count, Bitset(count)), down(count, Bitset(count));
  for (const OpId op : order) {
    up[op].set(op);
    for (const OpId before : graph.ops[op].before) up[op].add(up[before]);
  }
  for (size_t i = order.size(); i-- > 0;) {
    const OpId op = order[i];
    down[op].set(op);
    for (const OpId next : graph.ops[op].next) down[op].add(down[next]);
  }
  Bitset users(count), forced(count);
  for (const OrderGraph::Value& value : graph.values) {
    // A value is live at each operator that runs between its writer and one of its users.
    if (value.kept) {
      users.fill();
    } else {
      users.clear();
      for (const OpId op : value.touchers) users.add(up[op]);
    }
    if (value.writer == kNone) {
      forced = users;
    } else {
      forced = down[value.writer];
      forced.keep(users);
    }
    forced.for_each([&](size_t op) { load[op] += value.size; });
  }
  return load;
}

Bytes load_bound(const Problem& problem) {
  const std::vector<int64_t> loads = forced_loads(OrderGraph(problem));
  int64_t most = 0;
  for (const int64_t load : loads) most = std::max(most, load);
  return Bytes(most);
}

}  // namespace tidemark::planner
