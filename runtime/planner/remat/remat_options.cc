#include "runtime/planner/remat/remat_options.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidemark::planner::remat {
namespace {

bool accepts(const Variant& rider, int32_t parent) {
  return !rider.with || std::count(rider.with->begin(), rider.with->end(), parent) > 0;
}

// For each variant of each of the node's riders, whether it goes with the variant.
std::vector<bool> riders_of(const Problem& problem, const std::vector<NodeId>& riders,
                            int32_t variant) {
  std::vector<bool> result;
  for (const NodeId r : riders) {
    for (const Variant& rider : problem.nodes[r].variants) {
      result.push_back(accepts(rider, variant));
    }
  }
  return result;
}

// The least that is held while the variant runs.
int64_t least_memory(const Problem& problem, const Node& node, const Variant& variant) {
  int64_t sum = problem.fixed_bytes + node.adds_fixed + node.bytes + variant.workspace;
  for (const NodeId u : variant.inputs) sum += problem.nodes[u].bytes;
  const bool listed =
      std::binary_search(variant.inputs.begin(), variant.inputs.end(), variant.overwrites);
  if (variant.overwrites != kNoNode && !listed) sum += problem.nodes[variant.overwrites].bytes;
  return sum;
}

}  // namespace

Options::Options(const Problem& problem, int64_t budget) : problem_(problem), budget_(budget) {
  std::vector<std::vector<NodeId>> riders(problem.nodes.size());
  for (NodeId i = 0; i < problem.size(); ++i) {
    const NodeId parent = problem.nodes[i].rider_of;
    if (parent != kNoNode) riders[parent].push_back(i);
  }
  using Key =
      std::tuple<std::vector<NodeId>, NodeId, bool, std::vector<int32_t>, std::vector<bool>>;
  node_begin_.push_back(0);
  for (NodeId i = 0; i < problem.size(); ++i) {
    const Node& node = problem.nodes[i];
    bytes_.push_back(node.bytes);
    adds_fixed_.push_back(node.adds_fixed);
    must_run_.push_back(problem.must_run(i));
    once_.push_back(node.once);
    std::map<Key, std::vector<int32_t>> groups;
    for (int32_t v = 0; v < static_cast<int32_t>(node.variants.size()); ++v) {
      const Variant& variant = node.variants[v];
      if (least_memory(problem, node, variant) > budget) continue;
      groups[{variant.inputs, variant.overwrites, variant.with.has_value(),
              variant.with.value_or(std::vector<int32_t>()), riders_of(problem, riders[i], v)}]
          .push_back(v);
    }
    for (const auto& [key, variants] : groups) add_option(i, variants);
    node_begin_.push_back(static_cast<int32_t>(by_node_.size()));
  }
  find_parents();
}

void Options::add_option(NodeId i, const std::vector<int32_t>& variants) {
  const Node& node = problem_.nodes[i];
  const Variant& sample = node.variants[variants[0]];
  Option option;
  option.node = i;
  option.overwrites = sample.overwrites;
  option.rider_of = node.rider_of;
  option.inputs_begin = static_cast<int32_t>(inputs_.size());
  inputs_.insert(inputs_.end(), sample.inputs.begin(), sample.inputs.end());
  option.inputs_end = static_cast<int32_t>(inputs_.size());
  for (const bool again : {false, true}) {
    std::vector<Choice> all;
    for (const int32_t v : variants) {
      const Variant& variant = node.variants[v];
      if (variant.when == (again ? When::kFirst : When::kAgain)) continue;
      all.push_back({node.bytes + variant.workspace, variant.time, v});
    }
    std::sort(all.begin(), all.end(), [](const Choice& a, const Choice& b) {
      return std::tie(a.need, a.time, a.variant) < std::tie(b.need, b.time, b.variant);
    });
    option.choices_begin[again] = static_cast<int32_t>(choices_.size());
    for (const Choice& choice : all) {
      const bool is_first =
          static_cast<int32_t>(choices_.size()) == option.choices_begin[again];
      if (is_first || choice.time < choices_.back().time) choices_.push_back(choice);
    }
    option.choices_end[again] = static_cast<int32_t>(choices_.size());
  }
  variant_of_.push_back(variants[0]);
  by_node_.push_back(size());
  options_.push_back(option);
}

void Options::find_parents() {
  parents_.resize(options_.size());
  for (OptionId o = 0; o < size(); ++o) {
    const NodeId parent = options_[o].rider_of;
    if (parent == kNoNode) continue;
    const Variant& rider = problem_.nodes[options_[o].node].variants[variant_of_[o]];
    for (const OptionId p : of_node(parent)) {
      if (accepts(rider, variant_of_[p])) parents_[o].push_back(p);
    }
  }
}

bool Options::goes_with(OptionId rider, OptionId parent) const {
  return std::binary_search(parents_[rider].begin(), parents_[rider].end(), parent);
}

}  // namespace tidemark::planner::remat
