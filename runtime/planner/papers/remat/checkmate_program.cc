#include "runtime/planner/papers/remat/checkmate_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/remat/budget_unit.h"

namespace tidemark::planner::remat {

CheckmateProgram::CheckmateProgram(const Problem& problem, int64_t budget,
                                   const CheckmateOptions& options)
    : problem_(problem), options_(options) {
  const BudgetUnit scale(budget);
  unit_ = scale.unit;
  limit_ = scale.limit;
  choose_nodes(problem);
  add_variables();
  for (int t = 0; t < static_cast<int>(items_.size()); ++t) {
    add_dependencies(t);
    add_memory(t);
  }
}

// The first variant that Checkmate knows. Inputs are nodes here, positions later.
CheckmateProgram::Choice CheckmateProgram::choose(const Problem& problem, NodeId node,
                                                  When unsuitable) const {
  const auto& variants = problem.nodes[node].variants;
  for (int32_t v = 0; v < static_cast<int32_t>(variants.size()); ++v) {
    const Variant& variant = variants[static_cast<size_t>(v)];
    const bool reads_rider =
        std::any_of(variant.inputs.begin(), variant.inputs.end(),
                    [&](NodeId u) { return problem.nodes[u].rider_of != kNoNode; });
    if (variant.when == unsuitable || variant.overwrites != kNoNode || reads_rider) continue;
    return {v, {variant.inputs.begin(), variant.inputs.end()}};
  }
  return {-1, {}};
}

void CheckmateProgram::choose_nodes(const Problem& problem) {
  const auto fail = [&](NodeId i, const char* what) {
    throw UsageError("[checkmate] nodes[" + std::to_string(i) + "] (" + problem.nodes[i].name +
                     "): " + what);
  };
  const std::vector<NodeId> order = first_order(problem);
  std::vector<char> is_needed(problem.nodes.size());
  std::vector<Choice> first(problem.nodes.size()), again(problem.nodes.size());
  for (size_t k = order.size(); k-- > 0;) {
    const NodeId i = order[k];
    if (!problem.must_run(i) && is_needed[i] == 0) continue;
    is_needed[i] = 1;
    if (problem.nodes[i].rider_of != kNoNode) fail(i, "Checkmate's program has no riders");
    first[i] = choose(problem, i, When::kAgain);
    again[i] = choose(problem, i, When::kFirst);
    if (first[i].variant < 0) {
      fail(i, "has no variant that Checkmate knows: not in place, without riders");
    }
    for (const int u : first[i].inputs) is_needed[u] = 1;
    for (const int u : again[i].inputs) is_needed[u] = 1;
  }
  std::vector<int> position(problem.nodes.size(), -1);
  int64_t fixed = problem.fixed_bytes;
  for (const NodeId i : order) {
    if (is_needed[i] == 0) continue;
    const Node& node = problem.nodes[i];
    Item item;
    item.node = i;
    item.bytes = static_cast<double>(node.bytes) / unit_;
    item.fixed_before = static_cast<double>(fixed) / unit_;
    fixed += node.adds_fixed;
    item.fixed = static_cast<double>(fixed) / unit_;
    item.may_run_again = !node.once && node.adds_fixed == 0 && again[i].variant >= 0;
    item.first = first[i];
    item.again = again[i];
    for (auto* inputs : {&item.first.inputs, &item.again.inputs}) {
      for (int& u : *inputs) {
        u = position[u];
        if (u < 0) fail(i, "reads a value that comes later in the order");
      }
    }
    position[i] = static_cast<int>(items_.size());
    for (const NodeId u : node.after) {  // u's position is known: the order has it before
      if (position[u] < 0) continue;
      Item& reader = items_[static_cast<size_t>(position[u])];
      reader.last_stage = std::min(reader.last_stage, position[i]);
    }
    items_.push_back(std::move(item));
  }
}

void CheckmateProgram::add(const char* equation, LinearSum sum, double lower, double upper) {
  terms_ += static_cast<int64_t>(sum.terms.size());
  if (terms_ > options_.most_terms) {
    throw UsageError("[checkmate] the program has more than " +
                     std::to_string(options_.most_terms / 1'000'000) + " million terms");
  }
  add_row(program_, equation, std::move(sum), lower, upper);
}

// R and S, with (1a), (1d) and (8a) to (8c).
void CheckmateProgram::add_variables() {
  const int n = static_cast<int>(items_.size());
  runs_.assign(items_.size(), std::vector<LinearSum>(items_.size()));
  kept_ = runs_;
  for (int t = 0; t < n; ++t) {
    for (int i = 0; i <= t; ++i) {
      if (i < t && (!items_[i].may_run_again || t > items_[i].last_stage)) continue;
      const int r = program_.add_binary("R");
      Variable& variable = program_.variables[static_cast<size_t>(r)];
      if (i == t) variable.lower = 1;
      variable.cost = problem_.nodes[items_[i].node]
                          .variants[static_cast<size_t>(choice(t, i).variant)]
                          .time;
      runs_[t][i] = LinearSum::of(r);
    }
    for (int i = 0; i < t; ++i) kept_[t][i] = LinearSum::of(program_.add_binary("S"));
  }
}

void CheckmateProgram::add_dependencies(int t) {
  for (int j = 0; j <= t; ++j) {
    if (runs_[t][j].is_zero()) continue;
    for (const int i : choice(t, j).inputs) {
      add("(1b)", LinearSum{runs_[t][j]}.add(runs_[t][i], -1).add(kept_[t][i], -1), -kInfinity,
          0);
    }
  }
  for (int i = 0; i < t; ++i) {
    add("(1c)", LinearSum{kept_[t][i]}.add(runs_[t - 1][i], -1).add(kept_[t - 1][i], -1),
        -kInfinity, 0);
  }
}

// M_i FREE[t,i,k], with (7).
LinearSum CheckmateProgram::add_free(int t, int i, int k) {
  const int n = static_cast<int>(items_.size());
  if (items_[i].bytes == 0) return {};
  LinearSum hazards{1, {}};
  hazards.add(runs_[t][k], -1);
  double most = 1;
  const auto hazard = [&](const LinearSum& bit) {
    if (bit.is_zero()) return;
    hazards.add(bit);
    most += 1;
  };
  if (t + 1 < n) hazard(kept_[t + 1][i]);
  for (int j = k + 1; j <= t; ++j) {
    const auto& inputs = choice(t, j).inputs;
    if (std::find(inputs.begin(), inputs.end(), i) != inputs.end()) hazard(runs_[t][j]);
  }
  const LinearSum free = LinearSum::of(program_.add_binary("FREE"));
  add("(7)", LinearSum{1, {}}.add(free, -1).add(hazards, -1), -kInfinity, 0);
  add("(7)", LinearSum{hazards}.add(free, most), -kInfinity, most);
  return LinearSum{}.add(free, items_[i].bytes);
}

// (2) to (5). U leaves the fixed bytes out; they are taken off the limit.
void CheckmateProgram::add_memory(int t) {
  LinearSum before;  // U[t,k] - freed(t,k), or U[t,0]
  for (int i = 0; i < t; ++i) before.add(kept_[t][i], items_[i].bytes);
  for (int k = 0; k <= t; ++k) {
    if (runs_[t][k].is_zero()) continue;
    const Item& item = items_[k];
    const double limit = limit_ - (k == t ? item.fixed : items_[t].fixed_before);
    const int used = program_.add_variable({.name = "U", .lower = 0, .upper = kInfinity});
    add("(3)", LinearSum::of(used, -1).add(before).add(runs_[t][k], item.bytes), 0, 0);
    LinearSum room = LinearSum::of(used);
    if (options_.workspace) {
      const auto& variants = problem_.nodes[item.node].variants;
      const auto workspace = variants[static_cast<size_t>(choice(t, k).variant)].workspace;
      room.add(runs_[t][k], static_cast<double>(workspace) / unit_);
    }
    add("U <= M", room, -kInfinity, limit);
    before = LinearSum::of(used);
    before.add(add_free(t, k, k), -1);
    for (const int i : choice(t, k).inputs) before.add(add_free(t, i, k), -1);
  }
}

std::vector<PlannedRun> CheckmateProgram::decode(const std::vector<double>& values) const {
  std::vector<PlannedRun> runs;
  for (int t = 0; t < static_cast<int>(items_.size()); ++t) {
    for (int k = 0; k <= t; ++k) {
      const LinearSum& r = runs_[t][k];
      if (r.is_zero() || values[static_cast<size_t>(r.terms[0].variable)] < 0.5) continue;
      runs.push_back({items_[k].node, choice(t, k).variant});
    }
  }
  return runs;
}

}  // namespace tidemark::planner::remat
