#include "runtime/planner/remat/forced_runs.h"

#include <algorithm>

namespace tidemark::planner::remat {

ForcedRuns::ForcedRuns(const Options& options) {
  const Problem& problem = options.problem();
  const size_t count = problem.nodes.size(), words = (count + 63) / 64;
  // The greatest sets in which each node's follow from its sources': by induction over time, a
  // first run comes after the first runs of all sources of one of its options.
  before_.assign(count, Bits(words, ~uint64_t{0}));
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId i = 0; i < problem.size(); ++i) changed |= narrow(options, i);
  }
  is_forced_.assign(count, 0);
  for (NodeId i = 0; i < problem.size(); ++i) {
    if (!problem.must_run(i)) continue;
    if (is_before(i, i)) possible_ = false;  // the set never shrank: it cannot run
    is_forced_[i] = 1;
    for (NodeId j = 0; j < problem.size(); ++j) {
      if (is_before(j, i)) is_forced_[j] = 1;
    }
  }
  for (NodeId i = 0; i < problem.size(); ++i) {
    if (is_forced_[i]) nodes_.push_back(i);
  }
}

bool ForcedRuns::narrow(const Options& options, NodeId i) {
  Bits common(before_[i].size(), ~uint64_t{0});
  for (const OptionId o : options.of_node(i)) {
    if (options.choices(o, false).empty()) continue;
    Bits sources(common.size(), 0);
    const auto add = [&](NodeId u) {
      sources[u / 64] |= uint64_t{1} << (u % 64);
      for (size_t w = 0; w < sources.size(); ++w) sources[w] |= before_[u][w];
    };
    for (const NodeId u : options.inputs(o)) add(u);
    if (options.rider_of(o) != kNoNode) add(options.rider_of(o));
    for (size_t w = 0; w < common.size(); ++w) common[w] &= sources[w];
  }
  if (common == before_[i]) return false;
  before_[i] = std::move(common);
  return true;
}

std::vector<NodeId> ForcedRuns::chain() const {
  // By the number of nodes before them, each comes after its own.
  std::vector<NodeId> order = nodes_;
  std::vector<int> count(before_.size());
  for (const NodeId i : nodes_) {
    for (const uint64_t word : before_[i]) count[i] += __builtin_popcountll(word);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return count[a] < count[b]; });
  std::vector<int> length(before_.size(), 1);
  std::vector<NodeId> previous(before_.size(), kNoNode);
  NodeId last = kNoNode;
  for (const NodeId i : order) {
    for (const NodeId j : order) {
      if (j == i || !is_before(j, i) || length[j] + 1 <= length[i]) continue;
      length[i] = length[j] + 1;
      previous[i] = j;
    }
    if (last == kNoNode || length[i] > length[last]) last = i;
  }
  std::vector<NodeId> chain;
  for (NodeId i = last; i != kNoNode; i = previous[i]) chain.push_back(i);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace tidemark::planner::remat
