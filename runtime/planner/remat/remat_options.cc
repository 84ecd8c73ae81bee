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

// The inputs and the value overwritten, ascending.
std::vector<NodeId> sources(const Variant& variant) {
  std::vector<NodeId> result = variant.inputs;
  const auto at = std::lower_bound(result.begin(), result.end(), variant.overwrites);
  const bool is_listed = at != result.end() && *at == variant.overwrites;
  if (variant.overwrites != kNoNode && !is_listed) result.insert(at, variant.overwrites);
  return result;
}

// The least that is held while the variant runs.
int64_t least_memory(const Problem& problem, const Node& node, const Variant& variant) {
  int64_t sum = problem.fixed_bytes + node.adds_fixed + node.bytes + variant.workspace;
  for (const NodeId u : sources(variant)) sum += problem.nodes[u].bytes;
  return sum;
}

}  // namespace

Options::Options(const Problem& problem, int64_t budget) : problem_(problem), budget_(budget) {
  std::vector<std::vector<NodeId>> riders(problem.nodes.size());
  for (NodeId i = 0; i < problem.size(); ++i) {
    const NodeId parent = problem.nodes[i].rider_of;
    if (parent != kNoNode) riders[parent].push_back(i);
  }
  using Key = std::tuple<std::vector<NodeId>, bool, std::vector<int32_t>, std::vector<bool>>;
  node_begin_.push_back(0);
  for (NodeId i = 0; i < problem.size(); ++i) {
    const Node& node = problem.nodes[i];
    bytes_.push_back(node.bytes);
    adds_fixed_.push_back(node.adds_fixed);
    must_run_.push_back(problem.must_run(i));
    once_.push_back(node.once);
    has_after_ |= !node.after.empty();
    std::map<Key, std::vector<int32_t>> groups;
    for (int32_t v = 0; v < static_cast<int32_t>(node.variants.size()); ++v) {
      const Variant& variant = node.variants[v];
      if (least_memory(problem, node, variant) > budget) continue;
      groups[{sources(variant), variant.with.has_value(),
              variant.with.value_or(std::vector<int32_t>()), riders_of(problem, riders[i], v)}]
          .push_back(v);
    }
    for (const auto& [key, variants] : groups) add_options(i, variants);
    node_begin_.push_back(static_cast<int32_t>(by_node_.size()));
  }
  find_parents();
}

// One option for the variants that overwrite nothing and those that overwrite either of two
// values; an option of its own for each other value that is overwritten.
void Options::add_options(NodeId i, const std::vector<int32_t>& variants) {
  const Node& node = problem_.nodes[i];
  std::map<NodeId, std::vector<int32_t>> by_overwritten;
  for (const int32_t v : variants) by_overwritten[node.variants[v].overwrites].push_back(v);
  Option common;
  common.node = i;
  common.rider_of = node.rider_of;
  std::vector<int32_t> shared;
  const auto none = by_overwritten.find(kNoNode);
  if (none != by_overwritten.end()) {
    shared = none->second;
    by_overwritten.erase(none);
    for (NodeId& overwritten : common.may_overwrite) {
      if (by_overwritten.empty()) break;
      const auto first = by_overwritten.begin();
      overwritten = first->first;
      shared.insert(shared.end(), first->second.begin(), first->second.end());
      by_overwritten.erase(first);
    }
    add_option(i, shared, common);
  }
  for (const auto& [overwritten, own] : by_overwritten) {
    Option option = common;
    option.overwrites = overwritten;
    option.may_overwrite[0] = option.may_overwrite[1] = kNoNode;
    add_option(i, own, option);
  }
}

void Options::add_option(NodeId i, const std::vector<int32_t>& variants, Option option) {
  const Node& node = problem_.nodes[i];
  const std::vector<NodeId> inputs = sources(node.variants[variants[0]]);
  option.inputs_begin = static_cast<int32_t>(inputs_.size());
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  option.inputs_end = static_cast<int32_t>(inputs_.size());
  const NodeId always = option.overwrites, a = option.may_overwrite[0],
               b = option.may_overwrite[1];
  for (const bool again : {false, true}) {
    option.choices[again][kNotInPlace] = add_choices(node, variants, again, {always});
    option.choices[again][kOverFirst] = add_choices(node, variants, again, {always, a});
    option.choices[again][kOverSecond] = add_choices(node, variants, again, {always, b});
    option.choices[again][kAnyPlace] = add_choices(node, variants, again, {always, a, b});
  }
  variant_of_.push_back(variants[0]);
  by_node_.push_back(size());
  options_.push_back(option);
}

// The useful choices among the variants that overwrite nothing or one of `overwritable`.
Options::Range Options::add_choices(const Node& node, const std::vector<int32_t>& variants,
                                    bool again, const std::vector<NodeId>& overwritable) {
  std::vector<Choice> all;
  for (const int32_t v : variants) {
    const Variant& variant = node.variants[v];
    if (variant.when == (again ? When::kFirst : When::kAgain)) continue;
    const bool is_possible =
        variant.overwrites == kNoNode ||
        std::count(overwritable.begin(), overwritable.end(), variant.overwrites) > 0;
    if (is_possible) all.push_back({node.bytes + variant.workspace, variant.time, v});
  }
  std::sort(all.begin(), all.end(), [](const Choice& a, const Choice& b) {
    return std::tie(a.need, a.time, a.variant) < std::tie(b.need, b.time, b.variant);
  });
  Range range;
  range.begin = static_cast<int32_t>(choices_.size());
  for (const Choice& choice : all) {
    const bool is_first = static_cast<int32_t>(choices_.size()) == range.begin;
    if (is_first || choice.time < choices_.back().time) choices_.push_back(choice);
  }
  range.end = static_cast<int32_t>(choices_.size());
  return range;
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
