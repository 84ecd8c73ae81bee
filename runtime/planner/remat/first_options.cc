#include "runtime/planner/remat/first_options.h"

#include <algorithm>
#include <limits>

namespace tidemark::planner::remat {
namespace {

// How bad an option is, for a node's first run.
double rank(const Options& options, OptionId o, Preference preference) {
  const auto choices = options.choices(o, false);
  if (preference == Preference::kFastest) return choices.back().time;
  int64_t sum = choices.front().need;
  for (const NodeId u : options.inputs(o)) sum += options.bytes(u);
  return static_cast<double>(sum);
}

// The node's best option whose sources come before it; kNoOption if there is none.
OptionId best_option(const Options& options, NodeId node, Preference preference,
                     const std::vector<int32_t>& position) {
  OptionId best = kNoOption;
  double least = std::numeric_limits<double>::infinity();
  const auto is_before = [&](NodeId u) {
    return position[u] >= 0 && position[u] < position[node];
  };
  for (const OptionId o : options.of_node(node)) {
    if (options.choices(o, false).empty()) continue;
    const auto inputs = options.inputs(o);
    if (!std::all_of(inputs.begin(), inputs.end(), is_before)) continue;
    // In place is for memory's sake: the search finds where.
    if (options.overwrites(o) != kNoNode && best != kNoOption) continue;
    const double value = rank(options, o, preference);
    if (value >= least) continue;
    least = value;
    best = o;
  }
  return best;
}

// Lets the parent take an option that the rider's option goes with.
void follow(const Options& options, NodeId rider, NodeId parent, FirstOptions& result) {
  if (options.goes_with(result.option[rider], result.option[parent])) return;
  for (const OptionId o : options.of_node(parent)) {
    if (!options.choices(o, false).empty() && options.goes_with(result.option[rider], o)) {
      result.option[parent] = o;
    }
  }
}

}  // namespace

FirstOptions choose_first_options(const Options& options, FirstOrder order,
                                  Preference preference) {
  const Problem& problem = options.problem();
  FirstOptions result;
  const size_t count = problem.nodes.size();
  result.option.assign(count, kNoOption);
  result.position.assign(count, -1);
  const std::vector<NodeId> all = first_order(problem, order);
  for (size_t k = 0; k < all.size(); ++k) result.position[all[k]] = static_cast<int32_t>(k);

  std::vector<uint8_t> needed(count);
  for (NodeId i = 0; i < problem.size(); ++i) needed[i] = problem.must_run(i);
  for (size_t k = all.size(); k-- > 0;) {
    const NodeId node = all[k];
    if (!needed[node]) continue;
    const OptionId option = best_option(options, node, preference, result.position);
    result.option[node] = option;
    if (option == kNoOption) {
      result.complete = false;
      return result;
    }
    for (const NodeId u : options.inputs(option)) needed[u] = 1;
    const NodeId parent = options.rider_of(option);
    if (parent != kNoNode) needed[parent] = 1;
  }
  // A rider moves to its parent, which takes an option that the rider goes with. Another rider
  // of the same parent stays where it is: the parent has to run again for it.
  std::vector<NodeId> rider(count, kNoNode);
  for (const NodeId node : all) {
    const NodeId parent = problem.nodes[node].rider_of;
    if (needed[node] && parent != kNoNode) rider[parent] = node;
  }
  for (const NodeId node : all) {
    for (NodeId next = node; next != kNoNode && needed[next]; next = rider[next]) {
      needed[next] = 0;
      result.order.push_back(next);
      if (rider[next] != kNoNode) follow(options, rider[next], next, result);
    }
  }
  for (int32_t& position : result.position) position = -1;
  for (size_t k = 0; k < result.order.size(); ++k) {
    result.position[result.order[k]] = static_cast<int32_t>(k);
  }
  return result;
}

}  // namespace tidemark::planner::remat
