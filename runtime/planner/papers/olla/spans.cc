#include "runtime/planner/papers/olla/spans.h"

#include <algorithm>

namespace tidemark::planner::olla {

int depth(const Graph& graph) {
  int most = 0;
  for (const int level : levels(graph.before, graph.topological)) {
    most = std::max(most, level + 1);
  }
  return most;
}

Spans make_spans(const Graph& graph, int steps, bool reduce) {
  Spans spans;
  spans.steps = steps;
  spans.asap.assign(graph.op_count(), 0);
  spans.alap.assign(graph.op_count(), steps - 1);
  if (reduce) {
    spans.asap = levels(graph.before, graph.topological);
    const std::vector<int> to_end = backward_levels(graph);
    for (size_t v = 0; v < to_end.size(); ++v) spans.alap[v] = steps - 1 - to_end[v];
  }
  for (const Tensor& tensor : graph.tensors) {
    const bool at_start = tensor.source == kNone;
    int last = reduce ? -1 : steps - 1, forced_last = -1;
    for (const OpId v : tensor.sinks) {
      last = std::max(last, spans.alap[v]);
      if (reduce) forced_last = std::max(forced_last, spans.asap[v]);
    }
    if (tensor.kept) last = forced_last = steps - 1;
    spans.first.push_back(at_start ? 0 : spans.asap[tensor.source] + 1);
    spans.last.push_back(last);
    spans.forced_first.push_back(at_start ? 0 : spans.alap[tensor.source] + 1);
    spans.forced_last.push_back(at_start ? std::max(0, forced_last) : forced_last);
  }
  return spans;
}

}  // namespace tidemark::planner::olla
