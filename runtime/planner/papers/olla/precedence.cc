#include "runtime/planner/papers/olla/precedence.h"

#include <algorithm>

namespace tidemark::planner::olla {

Precedence::Precedence(const Graph& graph, const Spans& spans)
    : graph_(graph), spans_(spans), above_(graph.op_count(), Bitset(graph.op_count())) {
  for (const OpId v : graph.topological) {
    for (const OpId u : graph.before[v]) {
      above_[v].add(above_[u]);
      above_[v].set(static_cast<size_t>(u));
    }
  }
}

// An operator that uses i and creates j is not above itself, so the test fails, as it should.
bool Precedence::precedes(int i, int j) const {
  const Tensor& one = graph_.tensors[i];
  const OpId source = graph_.tensors[j].source;
  if (one.kept || source == kNone) return false;
  if (one.sinks.empty()) {
    return one.source != kNone && above_[source].has(static_cast<size_t>(one.source));
  }
  return std::all_of(one.sinks.begin(), one.sinks.end(),
                     [&](OpId sink) { return above_[source].has(static_cast<size_t>(sink)); });
}

bool Precedence::never_together(int i, int j) const {
  // MUL begins where the tensor may be created.
  const auto begin = [&](int e) {
    const OpId source = graph_.tensors[e].source;
    return source == kNone ? 0 : spans_.asap[source];
  };
  const auto end = [&](int e) {
    const OpId source = graph_.tensors[e].source;
    return std::max(spans_.last[e], source == kNone ? 0 : spans_.alap[source]);
  };
  if (end(i) < begin(j) || end(j) < begin(i)) return true;
  return precedes(i, j) || precedes(j, i);
}

}  // namespace tidemark::planner::olla
