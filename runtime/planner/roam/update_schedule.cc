#include "runtime/planner/roam/update_schedule.h"

#include <algorithm>
#include <bit>

namespace tidemark::planner::roam {
namespace {

// Operators follow the graph's edges, and segments follow one another, except for floating
// operators.
class Timesteps {
 public:
  Timesteps(const OrderGraph& graph, const Phases& phases) {
    std::vector<OpId> order = phases.topological;
    std::stable_sort(order.begin(), order.end(),
                     [&](OpId a, OpId b) { return phases.segment[a] < phases.segment[b]; });
    std::vector<std::vector<OpId>> next(graph.size()), before(graph.size());
    for (const OpId id : order) {
      next[id] = graph.ops[id].next;
      const int segment = phases.segment[id];
      if (!phases.floats[id] && segment + 1 < phases.segments()) {
        next[id].push_back(phases.insensitive[segment]);
      }
      for (const OpId n : next[id]) before[n].push_back(id);
    }
    earliest = count_reached(order, next);
    latest = count_reached({order.rbegin(), order.rend()}, before);
    for (int64_t& t : latest) t = static_cast<int64_t>(graph.size()) - 1 - t;
  }

  std::vector<int64_t> earliest, latest;  // per operator

 private:
  // Per operator, how many operators reach it; counts the reach of 64 operators at a time.
  static std::vector<int64_t> count_reached(const std::vector<OpId>& order,
                                            const std::vector<std::vector<OpId>>& edges) {
    std::vector<int64_t> counts(order.size(), 0);
    std::vector<uint64_t> from(order.size());
    for (size_t first = 0; first < order.size(); first += 64) {
      std::fill(from.begin(), from.end(), 0);
      for (size_t k = first; k < order.size(); ++k) {
        uint64_t& mask = from[order[k]];
        counts[order[k]] += std::popcount(mask);
        if (k < first + 64) mask |= uint64_t{1} << (k - first);
        if (mask == 0) continue;
        for (const OpId next : edges[order[k]]) from[next] |= mask;
      }
    }
    return counts;
  }
};

// Bytes of activations that may be alive, per timestep and in total.
struct Activations {
  std::vector<int64_t> alive;
  int64_t sum = 0;
};

Activations estimate(const OrderGraph& graph, const Phases& phases, const Timesteps& steps) {
  Activations result;
  result.alive.assign(graph.size() + 1, 0);
  for (const OrderGraph::Value& value : graph.values) {
    const bool from_start = value.writer == kNone;
    if (from_start ? value.kept : phases.segment[value.writer] >= phases.turn) continue;
    int64_t latest = -1;
    bool in_backward = false;
    for (const OpId op : value.touchers) {
      if (phases.floats[op]) continue;
      latest = std::max(latest, steps.latest[op]);
      in_backward = in_backward || phases.segment[op] >= phases.turn;
    }
    if (!in_backward) continue;
    result.sum += value.size;
    result.alive[from_start ? 0 : steps.earliest[value.writer]] += value.size;
    result.alive[latest + 1] -= value.size;
  }
  for (size_t t = 1; t < result.alive.size(); ++t) result.alive[t] += result.alive[t - 1];
  return result;
}

double mean_size(const OrderGraph& graph) {
  double sum = 0;
  for (const OrderGraph::Value& value : graph.values) sum += static_cast<double>(value.size);
  return graph.values.empty() ? 0 : sum / static_cast<double>(graph.values.size());
}

}  // namespace

void place_updates(const OrderGraph& graph, const UpdateOptions& options, Phases& phases) {
  const int last = phases.segments() - 1;
  std::vector<int> target(graph.size(), 0);
  if (options.placement == UpdatePlacement::kScheduled && !phases.branches.empty()) {
    const Timesteps steps(graph, phases);
    const Activations activations = estimate(graph, phases, steps);
    const double mean = mean_size(graph);
    for (const UpdateBranch& branch : phases.branches) {
      const auto gradients = static_cast<double>(branch.gradients);
      const double takes = options.alpha > 0 ? options.alpha * gradients
                                             : static_cast<double>(branch.most_memory);
      int segment = branch.ready;
      const auto delays = [&] {
        const int64_t t = segment == branch.ready
                              ? steps.earliest[branch.first]
                              : steps.earliest[phases.insensitive[segment - 1]];
        return gradients > options.delay_radius * mean &&
               static_cast<double>(activations.alive[t]) + takes >
                   static_cast<double>(activations.sum);
      };
      while (segment < last && delays()) ++segment;
      for (const OpId op : branch.ops) target[op] = segment;
      if (!options.with_gradients) continue;
      for (const OpId op : branch.makers) target[op] = segment;
    }
  }
  if (options.placement != UpdatePlacement::kScheduled) {
    for (const UpdateBranch& branch : phases.branches) {
      const int segment = options.placement == UpdatePlacement::kLast ? last : branch.ready;
      for (const OpId op : branch.ops) target[op] = segment;
    }
  }
  // No operator of the trunk waits for a branch.
  for (const OpId id : phases.topological) {
    int& segment = phases.segment[id];
    segment = std::max(segment, target[id]);
    for (const OpId before : graph.ops[id].before) {
      segment = std::max(segment, phases.segment[before]);
    }
  }
}

}  // namespace tidemark::planner::roam
