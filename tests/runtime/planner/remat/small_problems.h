// Small rematerialisation problems, and their optima by search over all states.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "runtime/planner/remat/remat_problem.h"

namespace tidemark::planner::remat {

inline Event run(NodeId node, int32_t variant = 0) { return {node, variant}; }
inline Event drop(NodeId node) { return {node, Event::kFree}; }

inline Node make_node(double time, int64_t bytes, std::vector<NodeId> inputs) {
  Node node;
  node.bytes = bytes;
  Variant variant;
  variant.time = time;
  variant.inputs = std::move(inputs);
  node.variants.push_back(variant);
  return node;
}

// a(1, 10 bytes) -> b(1, 20) -> c(1, 10) -> dc(b, c) -> db(a, dc) -> da(a, db). With 40 bytes
// the shortest schedule computes a twice, because dc needs 40 for b, c and itself.
inline Problem toy() {
  Problem problem;
  problem.name = "toy";
  problem.base_time = 6;
  problem.nodes = {make_node(1, 10, {}),     make_node(1, 20, {0}),    make_node(1, 10, {1}),
                   make_node(1, 10, {1, 2}), make_node(1, 10, {0, 3}), make_node(1, 0, {0, 4})};
  return problem;
}

// A random graph of 4 to 6 nodes with all features of the format. Times are small integers.
inline Problem random_small(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int count) { return static_cast<int>(random() % count); };
  Problem problem;
  const int count = 4 + below(3);
  for (NodeId i = 0; i < count; ++i) {
    std::vector<NodeId> inputs;
    for (NodeId j = 0; j < i; ++j) {
      if (j + 1 == i || below(3) == 0) inputs.push_back(j);
    }
    Node node = make_node(1 + below(6), 1 + below(5), inputs);
    node.variants[0].workspace = below(3) == 0 ? below(4) - 1 : 0;
    const Variant base = node.variants[0];  // a copy: what follows adds variants
    const int feature = below(9);
    if (feature == 0) {
      node.variants.push_back(base);
      node.variants[1].workspace += 1 + below(3);
      node.variants[1].time = std::max(0.0, base.time - 1 - below(3));
    } else if (feature == 1 && i > 0) {
      node.variants.push_back(base);
      node.variants[1].overwrites = inputs[below(static_cast<int>(inputs.size()))];
    } else if (feature == 2) {
      node.variants.push_back(base);
      node.variants[0].when = When::kFirst;
      node.variants[1].when = When::kAgain;
      node.variants[1].time = std::max(0.0, base.time - 2);
    } else if (feature == 3) {
      node.once = true;
    } else if (feature == 4) {
      node.once = true;
      node.required = true;
      node.adds_fixed = 1 + below(2);
    } else if (feature == 5 && i > 0 && problem.nodes[i - 1].rider_of == kNoNode) {
      node.rider_of = i - 1;
      node.bytes = 1;
      const std::vector<Variant>& parents = problem.nodes[i - 1].variants;
      if (parents.size() > 1 && parents[1].when == When::kAny) node.variants[0].with = {{1}};
    } else if (feature == 6 && i > 1) {
      node.variants.push_back(base);
      node.variants[1].inputs.pop_back();
      node.variants[1].time += 1;
    }
    problem.nodes.push_back(std::move(node));
  }
  if (below(3) == 0) {  // an update of what an early node reads
    const NodeId reader = below(count - 1);
    Node& update = problem.nodes[reader + 1 + below(count - 1 - reader)];
    if (update.rider_of == kNoNode) update.after = {reader};
    update.required |= below(2) == 0;
  }
  problem.base_time = 1;
  for (const Node& node : problem.nodes) problem.base_time += node.variants[0].time;
  return problem;
}

// The least time within the budget, infinite if no schedule fits: Dijkstra over live values,
// nodes that ran, and the last run. REQUIRES: what adds fixed bytes runs once.
inline double optimum(const Problem& problem, int64_t budget) {
  using State = std::tuple<uint32_t, uint32_t, int, int>;  // live, ran, last node and variant
  using Entry = std::pair<double, State>;
  std::map<State, double> least;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto offer = [&](double time, const State& state) {
    const auto [at, is_new] = least.emplace(state, time);
    if (!is_new && at->second <= time) return;
    at->second = time;
    queue.emplace(time, state);
  };
  offer(0, {0, 0, -1, -1});
  while (!queue.empty()) {
    const auto [time, state] = queue.top();
    queue.pop();
    if (least[state] < time) continue;
    const auto [live, ran, last, last_variant] = state;
    bool is_done = true;
    int64_t held = problem.fixed_bytes;
    for (NodeId i = 0; i < problem.size(); ++i) {
      is_done = is_done && (!problem.must_run(i) || (ran >> i & 1) != 0);
      if ((live >> i & 1) != 0) held += problem.nodes[i].bytes;
      if ((ran >> i & 1) != 0) held += problem.nodes[i].adds_fixed;
    }
    if (is_done) return time;
    for (NodeId i = 0; i < problem.size(); ++i) {
      const Node& node = problem.nodes[i];
      if ((live >> i & 1) != 0) {
        offer(time, {live & ~(1U << i), ran, last, last_variant});
        continue;
      }
      const bool again = (ran >> i & 1) != 0;
      if (again && node.once) continue;
      bool is_over = false;
      for (NodeId j = 0; j < problem.size(); ++j) {
        const auto& after = problem.nodes[j].after;
        is_over |= (ran >> j & 1) != 0 && std::count(after.begin(), after.end(), i) > 0;
      }
      if (is_over) continue;
      for (int v = 0; v < static_cast<int>(node.variants.size()); ++v) {
        const Variant& variant = node.variants[v];
        const auto is_live = [&, live = live](NodeId u) { return (live >> u & 1) != 0; };
        if (variant.when == (again ? When::kFirst : When::kAgain)) continue;
        if (!std::all_of(variant.inputs.begin(), variant.inputs.end(), is_live)) continue;
        if (variant.overwrites != kNoNode && !is_live(variant.overwrites)) continue;
        if (node.rider_of != kNoNode) {
          if (last != node.rider_of) continue;
          const auto& with = variant.with;
          if (with && std::count(with->begin(), with->end(), last_variant) == 0) continue;
        }
        if (held + node.adds_fixed + node.bytes + variant.workspace > budget) continue;
        uint32_t now = live | 1U << i;
        if (variant.overwrites != kNoNode) now &= ~(1U << variant.overwrites);
        offer(time + variant.time, {now, ran | 1U << i, i, v});
      }
    }
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace tidemark::planner::remat
