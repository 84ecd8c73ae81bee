#include "runtime/planner/order/cut_bound.h"

#include <algorithm>
#include <numeric>

#include "runtime/planner/order/max_flow.h"

namespace tidemark::planner {
namespace {

constexpr int64_t kWorkPerNode = 64;  // edges visited per node of a search

enum Side : uint8_t { kFree, kBefore, kAfter };

// Ancestors and descendants of `op`; it is neither itself.
std::vector<Side> sides(const OrderGraph& graph, OpId op) {
  std::vector<Side> side(graph.size(), kFree);
  std::vector<OpId> stack{op};
  while (!stack.empty()) {
    const OpId id = stack.back();
    stack.pop_back();
    for (const OpId before : graph.ops[id].before) {
      if (side[before] == kFree) side[before] = kBefore, stack.push_back(before);
    }
  }
  stack = {op};
  while (!stack.empty()) {
    const OpId id = stack.back();
    stack.pop_back();
    for (const OpId next : graph.ops[id].next) {
      if (side[next] == kFree) side[next] = kAfter, stack.push_back(next);
    }
  }
  return side;
}

class CutNetwork {
 public:
  CutNetwork(const OrderGraph& graph, OpId op)
      : graph_(graph), side_(sides(graph, op)), node_(graph.size(), -1) {
    const OrderGraph::Op& here = graph.ops[op];
    certain_ = graph.resident + here.workspace - here.in_place;
    std::vector<bool> touched(graph.values.size(), false);
    for (const int v : here.values) {
      touched[v] = true;
      certain_ += graph.values[v].size;
    }
    side_[op] = kAfter;
    for (size_t i = 0; i < graph.size(); ++i) {
      if (side_[i] == kFree) node_[i] = flow_.add_node();
    }
    for (size_t i = 0; i < graph.size(); ++i) {
      if (node_[i] < 0) continue;
      for (const OpId before : graph.ops[i].before) {
        if (node_[before] >= 0) flow_.add_edge(node_[i], node_[before], MaxFlow::kInfinite);
      }
    }
    for (size_t v = 0; v < graph.values.size(); ++v) {
      if (!touched[v]) add(graph.values[v]);
    }
  }

  CutBound run(int64_t node_limit, const Stopwatch& watch) {
    const int64_t most =
        node_limit > INT64_MAX / kWorkPerNode ? INT64_MAX : node_limit * kWorkPerNode;
    CutBound result;
    result.load = certain_ + flow_.run(most, watch);
    result.nodes = 1 + (flow_.work() + static_cast<int64_t>(graph_.size())) / kWorkPerNode;
    return result;
  }

 private:
  void add(const OrderGraph::Value& value) {
    const bool begun = value.writer == kNone || side_[value.writer] == kBefore;
    if (!begun && side_[value.writer] == kAfter) return;
    const bool goes_on = value.kept || std::any_of(value.touchers.begin(), value.touchers.end(),
                                                   [&](OpId t) { return side_[t] == kAfter; });
    if (begun && goes_on) {
      certain_ += value.size;
      return;
    }
    const int from = begun ? MaxFlow::kSource : node_[value.writer];
    if (goes_on) return flow_.add_edge(from, MaxFlow::kSink, value.size);
    int x = -1;
    for (const OpId t : value.touchers) {
      if (side_[t] != kFree || t == value.writer) continue;
      if (x < 0) {
        x = flow_.add_node();
        flow_.add_edge(from, x, value.size);
      }
      flow_.add_edge(x, node_[t], MaxFlow::kInfinite);
    }
  }

  const OrderGraph& graph_;
  std::vector<Side> side_;
  std::vector<int> node_;
  MaxFlow flow_;
  int64_t certain_ = 0;
};

}  // namespace

CutBound cut_bound_at(const OrderGraph& graph, OpId op, int64_t node_limit,
                      const Stopwatch& watch) {
  return CutNetwork(graph, op).run(node_limit, watch);
}

CutBound cut_bound(const OrderGraph& graph, const std::vector<int64_t>& upper, int64_t known,
                   int64_t node_limit, const Stopwatch& watch) {
  std::vector<OpId> ops(graph.size());
  std::iota(ops.begin(), ops.end(), 0);
  std::stable_sort(ops.begin(), ops.end(), [&](OpId a, OpId b) { return upper[a] > upper[b]; });
  CutBound result{known, 0};
  for (const OpId op : ops) {
    if (upper[op] <= result.load || result.nodes >= node_limit || watch.expired()) break;
    const CutBound at = cut_bound_at(graph, op, node_limit - result.nodes, watch);
    result.load = std::max(result.load, at.load);
    result.nodes += at.nodes;
  }
  return result;
}

}  // namespace tidemark::planner
