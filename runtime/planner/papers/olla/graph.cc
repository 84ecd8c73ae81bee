#include "runtime/planner/papers/olla/graph.h"

#include <algorithm>

#include "runtime/planner/order/order.h"

namespace tidemark::planner::olla {

Graph::Graph(const Problem& problem)
    : fanin(problem.op_count()),
      fanout(problem.op_count()),
      before(predecessors(problem)),
      next(problem.op_count()),
      topological(program_order(problem)) {
  const size_t count = problem.op_count();
  for (size_t v = 0; v < count; ++v) {
    for (const OpId u : before[v]) next[u].push_back(static_cast<OpId>(v));
  }
  std::vector<Tensor> by_storage(problem.storages.size());
  std::vector<bool> at_start(problem.storages.size());
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    const StorageId root = problem.root(static_cast<StorageId>(i));
    if (problem.storages[i].at_end) by_storage[root].kept = true;
    if (problem.storages[i].at_start) at_start[root] = true;
  }
  for (size_t v = 0; v < count; ++v) {
    const auto id = static_cast<OpId>(v);
    const Operator& op = problem.operators[v];
    for (const StorageId s : op.inputs) by_storage[problem.root(s)].sinks.push_back(id);
    for (const StorageId s : op.outputs) {
      if (problem.storages[s].alias_of == kNone) by_storage[s].source = id;
      by_storage[problem.root(s)].sinks.push_back(id);
    }
  }
  for (size_t i = 0; i < by_storage.size(); ++i) {
    Tensor& tensor = by_storage[i];
    tensor.storage = static_cast<StorageId>(i);
    tensor.size = problem.storages[i].size.count();
    if (problem.storages[i].alias_of != kNone || tensor.size == 0) continue;
    if (at_start[i]) tensor.source = kNone;
    std::sort(tensor.sinks.begin(), tensor.sinks.end());
    tensor.sinks.erase(std::unique(tensor.sinks.begin(), tensor.sinks.end()),
                       tensor.sinks.end());
    std::erase(tensor.sinks, tensor.source);
    if (at_start[i] && tensor.kept) {
      resident += tensor.size;
    } else if (tensor.source != kNone || !tensor.sinks.empty()) {
      tensors.push_back(std::move(tensor));
    }
  }
  for (size_t v = 0; v < count; ++v) {
    const int64_t workspace = problem.operators[v].workspace.count();
    const auto id = static_cast<OpId>(v);
    if (workspace > 0) {
      tensors.push_back({.size = workspace, .source = id, .sinks = {}, .workspace_of = id});
    }
  }
  // Precedence that no tensor with a size implies already.
  std::vector<std::vector<OpId>> said(count);
  for (const Tensor& tensor : tensors) {
    if (tensor.source == kNone) continue;
    said[tensor.source].insert(said[tensor.source].end(), tensor.sinks.begin(),
                               tensor.sinks.end());
  }
  for (size_t u = 0; u < count; ++u) {
    Tensor control{.source = static_cast<OpId>(u), .sinks = {}};
    for (const OpId v : next[u]) {
      if (std::find(said[u].begin(), said[u].end(), v) == said[u].end()) {
        control.sinks.push_back(v);
      }
    }
    if (!control.sinks.empty()) tensors.push_back(std::move(control));
  }
  for (size_t e = 0; e < tensors.size(); ++e) {
    if (tensors[e].source != kNone) fanout[tensors[e].source].push_back(static_cast<int>(e));
    for (const OpId v : tensors[e].sinks) fanin[v].push_back(static_cast<int>(e));
  }
}

std::vector<int> levels(const std::vector<std::vector<OpId>>& before,
                        const std::vector<OpId>& topological) {
  std::vector<int> level(before.size(), 0);
  for (const OpId v : topological) {
    for (const OpId u : before[v]) level[v] = std::max(level[v], level[u] + 1);
  }
  return level;
}

std::vector<int> backward_levels(const Graph& graph) {
  return levels(graph.next, {graph.topological.rbegin(), graph.topological.rend()});
}

}  // namespace tidemark::planner::olla
