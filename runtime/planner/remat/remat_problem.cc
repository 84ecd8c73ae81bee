#include "runtime/planner/remat/remat_problem.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "runtime/core/errors.h"

namespace tidemark::planner::remat {
namespace {

constexpr int64_t kMaxSum = int64_t{1} << 60;
// Of the sum of all times and of base_time; beyond these, what is computed from them overflows.
constexpr double kMaxTime = 1e100, kMinBase = 1e-100;
constexpr int64_t kTiny = 10'000;  // values below this part of the largest need no memory

class Checker {
 public:
  explicit Checker(const Problem& problem) : problem_(problem) {}

  void run() {
    if (problem_.nodes.empty()) fail("", "no nodes");
    if (problem_.fixed_bytes < 0) fail("", "fixed_bytes is negative");
    add(problem_.fixed_bytes, "");
    for (NodeId i = 0; i < problem_.size(); ++i) check_node(i);
    if (!(problem_.base_time >= kMinBase && problem_.base_time <= kMaxTime)) {
      fail("", "base_time must be positive, from 1e-100 to 1e100");
    }
    std::vector<bool> runs(problem_.nodes.size());
    for (const NodeId i : first_order(problem_)) runs[i] = true;
    for (NodeId i = 0; i < problem_.size(); ++i) {
      if (problem_.must_run(i) && !runs[i]) {
        fail(place(i), "is required, but no order computes its inputs before it");
      }
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& what) {
    throw UsageError((place.empty() ? "" : place + ": ") + what);
  }
  std::string place(NodeId i) const {
    return "nodes[" + std::to_string(i) + "] (" + problem_.nodes[i].name + ")";
  }
  void add(int64_t bytes, const std::string& where) {
    if (bytes > kMaxSum || (sum_ += bytes) > kMaxSum) fail(where, "the sizes are too large");
  }
  void check_known(NodeId value, NodeId user, const std::string& what) const {
    if (value < 0 || value >= problem_.size()) {
      fail(place(user), what + ": there is no node " + std::to_string(value));
    }
    if (value == user) fail(place(user), what + ": a node cannot refer to itself");
  }

  void check_list(const std::vector<NodeId>& list, NodeId user, const std::string& what) const {
    for (size_t k = 0; k < list.size(); ++k) {
      check_known(list[k], user, what);
      if (k > 0 && list[k] <= list[k - 1]) {
        fail(place(user), what + " are not in ascending order");
      }
    }
  }

  void check_node(NodeId i) {
    const Node& node = problem_.nodes[i];
    if (node.bytes < 0) fail(place(i), "a negative size");
    if (node.adds_fixed < 0) fail(place(i), "adds_fixed is negative");
    add(node.bytes, place(i));
    add(node.adds_fixed, place(i));
    if (node.rider_of != kNoNode) check_known(node.rider_of, i, "rider_of");
    if (node.rider_of != kNoNode && !node.after.empty()) {
      fail(place(i), "'after', but it comes right after its rider_of");
    }
    check_list(node.after, i, "after");
    if (node.variants.empty()) fail(place(i), "no variants");
    int64_t workspace = 0;
    double time = 0;
    for (const Variant& variant : node.variants) {
      check_variant(i, variant);
      workspace = std::max(workspace, std::abs(variant.workspace));
      time = std::max(time, variant.time);
    }
    if ((time_ += time) > kMaxTime) fail(place(i), "the sum of the times is beyond 1e100");
    add(workspace, place(i));
  }

  void check_variant(NodeId i, const Variant& variant) const {
    if (!std::isfinite(variant.time) || variant.time < 0) fail(place(i), "a negative time");
    if (std::abs(variant.workspace) > kMaxSum) fail(place(i), "the workspace is too large");
    check_list(variant.inputs, i, "inputs");
    if (variant.overwrites != kNoNode) check_known(variant.overwrites, i, "overwrites");
    if (!variant.with) return;
    if (problem_.nodes[i].rider_of == kNoNode) fail(place(i), "'with', but no 'rider_of'");
    const size_t count = problem_.nodes[problem_.nodes[i].rider_of].variants.size();
    for (const int32_t v : *variant.with) {
      if (v < 0 || static_cast<size_t>(v) >= count) {
        fail(place(i), "with: its rider_of has no variant " + std::to_string(v));
      }
    }
  }

  const Problem& problem_;
  int64_t sum_ = 0;
  double time_ = 0;
};

// Calls visit(u) for all nodes that must have run before the variant runs.
void for_each_source(const Node& node, const Variant& variant,
                     const std::function<void(NodeId)>& visit) {
  for (const NodeId u : variant.inputs) visit(u);
  if (variant.overwrites != kNoNode) visit(variant.overwrites);
  if (node.rider_of != kNoNode) visit(node.rider_of);
  for (const NodeId u : node.after) visit(u);
}

}  // namespace

void check_problem(const Problem& problem) { Checker(problem).run(); }

std::vector<NodeId> unneeded_nodes(const Problem& problem) {
  std::vector<bool> needed(problem.nodes.size());
  std::vector<NodeId> open;
  const auto need = [&](NodeId i) {
    if (i == kNoNode || needed[i]) return;
    needed[i] = true;
    open.push_back(i);
  };
  for (NodeId i = 0; i < problem.size(); ++i) {
    if (problem.must_run(i)) need(i);
  }
  while (!open.empty()) {
    const Node& node = problem.nodes[open.back()];
    open.pop_back();
    need(node.rider_of);
    for (const Variant& variant : node.variants) {
      for (const NodeId u : variant.inputs) need(u);
      need(variant.overwrites);
    }
  }
  std::vector<NodeId> unneeded;
  for (NodeId i = 0; i < problem.size(); ++i) {
    if (!needed[i]) unneeded.push_back(i);
  }
  return unneeded;
}

std::vector<NodeId> first_order(const Problem& problem, FirstOrder kind) {
  struct Waiting {
    NodeId node;
    int missing;
  };
  std::vector<Waiting> variants;
  std::vector<std::vector<size_t>> waiting_for(problem.nodes.size());  // indices of variants
  using Ready = std::pair<bool, NodeId>;  // whether it waits for its turn, and the node
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  int64_t most = 0;
  for (const Node& node : problem.nodes) most = std::max(most, node.bytes);
  const auto add_ready = [&](NodeId i) {
    ready.emplace(kind == FirstOrder::kAsListed || problem.nodes[i].bytes > most / kTiny, i);
  };
  for (NodeId i = 0; i < problem.size(); ++i) {
    for (const Variant& variant : problem.nodes[i].variants) {
      if (variant.when == When::kAgain) continue;
      Waiting waiting{i, 0};
      for_each_source(problem.nodes[i], variant, [&](NodeId u) {
        ++waiting.missing;
        waiting_for[u].push_back(variants.size());
      });
      if (waiting.missing == 0) add_ready(i);
      variants.push_back(waiting);
    }
  }
  std::vector<NodeId> order;
  std::vector<bool> ran(problem.nodes.size());
  while (!ready.empty()) {
    const NodeId node = ready.top().second;
    ready.pop();
    if (ran[node]) continue;
    ran[node] = true;
    order.push_back(node);
    for (const size_t v : waiting_for[node]) {
      if (--variants[v].missing == 0) add_ready(variants[v].node);
    }
  }
  return order;
}

}  // namespace tidemark::planner::remat
