#include "runtime/planner/papers/olla/early_updates.h"

#include <algorithm>
#include <utility>

#include "runtime/planner/papers/olla/graph.h"

namespace tidemark::planner::olla {
namespace {

bool is_state(const Problem& problem, StorageId id) {
  const Kind kind = problem.storages[problem.root(id)].kind;
  return kind == Kind::kParameter || kind == Kind::kOptimizerState;
}

bool is_update(const Problem& problem, const Operator& op) {
  const auto is_parameter = [&](StorageId id) {
    return problem.storages[problem.root(id)].kind == Kind::kParameter;
  };
  const auto is_other = [&](StorageId id) { return !is_state(problem, id); };
  return std::any_of(op.inputs.begin(), op.inputs.end(), is_parameter) &&
         std::any_of(op.inputs.begin(), op.inputs.end(), is_other) &&
         std::all_of(op.outputs.begin(), op.outputs.end(), [&](StorageId id) {
           return problem.storages[id].alias_of != kNone && is_state(problem, id);
         });
}

class AnchorSearch {
 public:
  explicit AnchorSearch(const Problem& problem)
      : problem_(problem),
        graph_(problem),
        level_(levels(graph_.before, graph_.topological)),
        backward_(backward_levels(graph_)) {}

  // The paper's Function 3.
  OpId anchor_of(OpId update) const {
    std::vector<OpId> from = sources({update});
    std::vector<std::pair<OpId, int>> cache(graph_.op_count(), {kNone, kUnknown});
    std::vector<bool> tried(graph_.op_count(), false);
    while (!from.empty()) {
      OpId best = kNone;
      int highest = 0;
      for (const OpId u : from) {
        tried[u] = true;
        const auto [candidate, level] = forwards(u, level_[update], cache);
        if (level > highest) {
          highest = level;
          best = candidate;
        }
      }
      if (best != kNone) return best;
      from = sources(from);
      std::erase_if(from, [&](OpId u) { return tried[u]; });
    }
    return kNone;
  }

 private:
  static constexpr int kUnknown = -2;

  // The operators whose outputs these use. An operator that only makes a parameter says nothing
  // about when.
  std::vector<OpId> sources(const std::vector<OpId>& of) const {
    std::vector<OpId> result;
    for (const OpId v : of) {
      for (const OpId u : graph_.before[v]) {
        const std::vector<StorageId>& outputs = problem_.operators[u].outputs;
        const bool makes_state =
            !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [&](StorageId id) {
              return is_state(problem_, id);
            });
        if (!makes_state) result.push_back(u);
      }
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  // The paper's Function 4: among the first operators forwards of `op` that are above `level`,
  // the one with the highest backward level. Uses an explicit stack, as graphs can be deep.
  std::pair<OpId, int> forwards(OpId op, int level,
                                std::vector<std::pair<OpId, int>>& cache) const {
    std::vector<OpId> stack = {op};
    while (!stack.empty()) {
      const OpId v = stack.back();
      if (cache[v].second != kUnknown) {
        stack.pop_back();
        continue;
      }
      bool waits = false;
      std::pair<OpId, int> best = {kNone, -1};
      for (const OpId w : graph_.next[v]) {
        if (level_[w] <= level && cache[w].second == kUnknown) {
          stack.push_back(w);
          waits = true;
          continue;
        }
        const std::pair<OpId, int> found =
            level_[w] > level ? std::pair(w, backward_[w]) : cache[w];
        if (found.second > best.second) best = found;
      }
      if (waits) continue;
      cache[v] = best;
      stack.pop_back();
    }
    return cache[op];
  }

  const Problem& problem_;
  Graph graph_;
  std::vector<int> level_, backward_;
};

}  // namespace

std::vector<ControlEdge> early_updates(const Problem& problem) {
  std::vector<ControlEdge> edges;
  const AnchorSearch search(problem);
  for (size_t v = 0; v < problem.op_count(); ++v) {
    if (!is_update(problem, problem.operators[v])) continue;
    const auto update = static_cast<OpId>(v);
    const OpId anchor = search.anchor_of(update);
    if (anchor != kNone) edges.push_back({update, anchor});
  }
  return edges;
}

Problem with_edges(Problem problem, const std::vector<ControlEdge>& edges) {
  for (const ControlEdge& edge : edges) {
    problem.operators[edge.anchor].after.push_back(edge.update);
  }
  return problem;
}

}  // namespace tidemark::planner::olla
