#include "runtime/planner/roam/phases.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tidemark::planner::roam {
namespace {

class PhaseFinder {
 public:
  PhaseFinder(const Problem& problem, const OrderGraph& graph)
      : problem_(problem), graph_(graph), count_(graph.size()) {}

  Phases run() {
    sort();
    find_gradients();
    find_updates();
    find_trunk();
    find_insensitive();
    assign_segments();
    find_turn();
    make_branches();
    return std::move(result_);
  }

 private:
  void sort() {
    std::vector<size_t> waits(count_);
    std::vector<OpId>& order = result_.topological;
    for (size_t i = 0; i < count_; ++i) {
      waits[i] = graph_.ops[i].before.size();
      if (waits[i] == 0) order.push_back(static_cast<OpId>(i));
    }
    for (size_t k = 0; k < order.size(); ++k) {
      for (const OpId next : graph_.ops[order[k]].next) {
        if (--waits[next] == 0) order.push_back(next);
      }
    }
  }

  // Finds the operators that write gradients and, per root, its users and whether it is live
  // before and after the step.
  void find_gradients() {
    const size_t storages = problem_.storages.size();
    at_start_.assign(storages, false);
    at_end_.assign(storages, false);
    for (size_t s = 0; s < storages; ++s) {
      const StorageId root = problem_.root(static_cast<StorageId>(s));
      if (problem_.storages[s].at_start) at_start_[root] = true;
      if (problem_.storages[s].at_end) at_end_[root] = true;
    }
    touchers_.assign(storages, {});
    after_gradient_.assign(count_, false);
    for (const OpId id : result_.topological) {
      const Operator& op = problem_.operators[id];
      for (const auto* uses : {&op.inputs, &op.outputs}) {
        for (const StorageId s : *uses) touchers_[problem_.root(s)].push_back(id);
      }
      for (const StorageId s : op.outputs) {
        if (problem_.storages[s].kind == Kind::kGradient) {
          gradient_writers_.push_back(id);
          after_gradient_[id] = true;
        }
      }
      for (const OpId before : graph_.ops[id].before) {
        if (after_gradient_[before]) after_gradient_[id] = true;
      }
    }
    labelled_ = !gradient_writers_.empty();
  }
  bool persists(StorageId root) const { return at_start_[root] && at_end_[root]; }

  bool all_updates(StorageId root, OpId but, OpId but_too = kNone) const {
    return std::all_of(touchers_[root].begin(), touchers_[root].end(),
                       [&](OpId op) { return op == but || op == but_too || is_update_[op]; });
  }

  // Whether the operator writes parameters or optimizer state, or takes them and writes no
  // known storage.
  bool ends_in_update(OpId id) const {
    if (labelled_ && !after_gradient_[id]) return false;
    const Operator& op = problem_.operators[id];
    const auto& list = op.outputs.empty() ? op.inputs : op.outputs;
    return std::any_of(list.begin(), list.end(),
                       [&](StorageId s) { return persists(problem_.root(s)); });
  }

  // Whether only updates use what else the operator writes, and the operator serves some
  // update.
  bool serves_updates(OpId id) const {
    bool serves = ends_in_update(id);
    for (const StorageId s : problem_.operators[id].outputs) {
      const StorageId root = problem_.root(s);
      const bool only_updates = all_updates(root, id);
      if (!persists(root) && (at_end_[root] || !only_updates)) return false;
      // Adam's decay of a moment precedes the gradient, and the update uses the moment later.
      serves = serves || (only_updates && touchers_[root].back() != id);
    }
    return serves;
  }

  // Whether the operator may be part of a branch. Before its last operator, a branch reads only
  // gradients, its own storages and persistent ones, so it does not reach up into the backward
  // pass.
  bool lies_in_branch(OpId id) const {
    if (ends_in_update(id)) return true;
    const Operator& op = problem_.operators[id];
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](StorageId s) {
      const StorageId root = problem_.root(s);
      if (persists(root)) return true;
      return !at_start_[root] && all_updates(root, id, touchers_[root].front());
    });
  }

  // Finds the largest set of operators of which all of the above holds.
  void find_updates() {
    is_update_.assign(count_, true);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = count_; k-- > 0;) {
        const OpId id = result_.topological[k];
        if (!is_update_[id] || (serves_updates(id) && lies_in_branch(id))) continue;
        is_update_[id] = false;
        changed = true;
      }
    }
    if (labelled_) return;
    // The first operator that touches a root writes it.
    for (size_t s = 0; s < touchers_.size(); ++s) {
      if (touchers_[s].empty() || at_start_[s] || is_update_[touchers_[s].front()]) continue;
      if (std::any_of(touchers_[s].begin(), touchers_[s].end(),
                      [&](OpId op) { return is_update_[op]; })) {
        gradient_writers_.push_back(touchers_[s].front());
      }
    }
  }

  // For each operator of `order`, whether all operators listed earlier come before it. The
  // predecessors before(op) are listed earlier.
  template <class Before>
  std::vector<bool> comes_after_all(const std::vector<OpId>& order, Before before) const {
    std::vector<bool> is_end(count_, false), result(count_, false);
    size_t ends = 0;
    for (const OpId id : order) {
      for (const OpId earlier : before(id)) {
        if (is_end[earlier]) --ends;
        is_end[earlier] = false;
      }
      is_end[id] = true;
      result[id] = ++ends == 1;
    }
    return result;
  }

  // The position from which on operators come after all updates and everything else.
  size_t epilogue() const {
    const std::vector<OpId>& order = result_.topological;
    size_t updates_end = 0;
    for (size_t k = 0; k < count_; ++k) {
      if (is_update_[order[k]]) updates_end = k + 1;
    }
    if (updates_end == 0) return count_;
    const std::vector<bool> after_all = comes_after_all(
        order, [&](OpId id) -> const auto& { return graph_.ops[id].before; });
    size_t begin = updates_end;
    while (begin < count_ && !after_all[order[begin]]) ++begin;
    return begin;
  }

  // Finds the trunk: the longest path that ends in an operator that is no update, and all
  // operators after its first and before its last. Other operators before the last one feed the
  // trunk.
  void find_trunk() {
    const std::vector<OpId>& order = result_.topological;
    const size_t end = epilogue();
    std::vector<int> depth(count_, 0);
    std::vector<OpId> from(count_, kNone);
    OpId last = kNone;
    for (size_t k = 0; k < end; ++k) {
      const OpId id = order[k];
      for (const OpId before : graph_.ops[id].before) {
        if (depth[before] + 1 <= depth[id]) continue;
        depth[id] = depth[before] + 1;
        from[id] = before;
      }
      if (is_update_[id]) continue;
      if (last == kNone || std::pair(depth[last], last) < std::pair(depth[id], id)) last = id;
    }
    in_trunk_.assign(count_, false);
    feeds_.assign(count_, false);
    if (last == kNone) return;
    feeds_[last] = true;
    for (size_t k = count_; k-- > 0;) {
      if (!feeds_[order[k]]) continue;
      for (const OpId before : graph_.ops[order[k]].before) feeds_[before] = true;
    }
    OpId first = last;
    while (from[first] != kNone) first = from[first];
    in_trunk_[first] = true;
    for (const OpId id : order) {
      const auto& before = graph_.ops[id].before;
      if (feeds_[id] &&
          std::any_of(before.begin(), before.end(), [&](OpId b) { return in_trunk_[b]; })) {
        in_trunk_[id] = true;
      }
      if (in_trunk_[id]) feeds_[id] = false;
    }
  }

  void find_insensitive() {
    std::vector<OpId> trunk;
    for (const OpId id : result_.topological) {
      if (in_trunk_[id]) trunk.push_back(id);
    }
    const std::vector<bool> after_all = comes_after_all(
        trunk, [&](OpId id) -> const auto& { return graph_.ops[id].before; });
    const std::vector<OpId> back(trunk.rbegin(), trunk.rend());
    const std::vector<bool> before_all = comes_after_all(
        back, [&](OpId id) -> const auto& { return graph_.ops[id].next; });
    for (const OpId id : trunk) {
      if (after_all[id] && before_all[id]) result_.insensitive.push_back(id);
    }
  }

  void assign_segments() {
    result_.segment.assign(count_, 0);
    result_.epilogue.assign(count_, false);
    std::vector<bool> is_insensitive(count_, false);
    for (const OpId id : result_.insensitive) is_insensitive[id] = true;
    int passed = 0;
    for (const OpId id : result_.topological) {
      if (!in_trunk_[id]) continue;
      if (is_insensitive[id]) ++passed;
      result_.segment[id] = passed;
    }
    for (size_t k = count_; k-- > 0;) {
      const OpId id = result_.topological[k];
      if (!feeds_[id]) continue;
      int& segment = result_.segment[id];
      segment = result_.segments() - 1;
      for (const OpId next : graph_.ops[id].next) {
        if (feeds_[next] || in_trunk_[next]) {
          segment = std::min(segment, result_.segment[next]);
        }
      }
    }
    const size_t end = epilogue();
    for (size_t k = 0; k < count_; ++k) {
      const OpId id = result_.topological[k];
      if (in_trunk_[id] || feeds_[id]) continue;
      int& segment = result_.segment[id];
      if (k >= end) {
        segment = result_.segments() - 1;
        result_.epilogue[id] = true;
      }
      for (const OpId before : graph_.ops[id].before) {
        segment = std::max(segment, result_.segment[before]);
      }
    }
  }

  void find_turn() {
    result_.turn = result_.segments();
    for (const OpId id : gradient_writers_) {
      // An operator without predecessors, such as the one that makes the loss's own gradient,
      // tells nothing.
      if (graph_.ops[id].before.empty()) continue;
      result_.turn = std::min(result_.turn, result_.segment[id]);
    }
  }

  size_t find(std::vector<size_t>& parent, size_t i) const {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  }

  void make_branches() {
    result_.floats.assign(count_, false);
    for (size_t i = 0; i < count_; ++i) result_.floats[i] = is_update_[i] && !in_trunk_[i];
    std::vector<size_t> parent(count_);
    std::iota(parent.begin(), parent.end(), size_t{0});
    for (const OrderGraph::Value& value : graph_.values) {
      OpId first = kNone;
      for (const OpId op : value.touchers) {
        if (!result_.floats[op]) continue;
        if (first != kNone) parent[find(parent, op)] = find(parent, first);
        first = op;
      }
    }
    // The graph leaves out what persists. Operators that write the same moment belong together,
    // but not all readers of a counter of steps.
    std::vector<OpId> writer(problem_.storages.size(), kNone);
    for (const OpId id : result_.topological) {
      if (!result_.floats[id]) continue;
      for (const StorageId s : problem_.operators[id].outputs) {
        const StorageId root = problem_.root(s);
        if (!persists(root)) continue;
        if (writer[root] != kNone) parent[find(parent, id)] = find(parent, writer[root]);
        writer[root] = id;
      }
    }
    std::vector<int> branch_of(count_, -1);
    for (const OpId id : result_.topological) {
      if (!result_.floats[id]) continue;
      int& branch = branch_of[find(parent, id)];
      if (branch < 0) {
        branch = static_cast<int>(result_.branches.size());
        result_.branches.emplace_back();
      }
      UpdateBranch& into = result_.branches[branch];
      into.ops.push_back(id);
      into.ready = std::max(into.ready, result_.segment[id]);
    }
    for (UpdateBranch& branch : result_.branches) weigh(branch);
    find_makers(branch_of, parent);
  }

  // Finds operators off the trunk whose successors are all in one branch or among its makers.
  void find_makers(const std::vector<int>& branch_of, std::vector<size_t>& parent) {
    std::vector<int> serves(count_, -1);
    for (size_t i = 0; i < count_; ++i) {
      if (result_.floats[i]) serves[i] = branch_of[find(parent, i)];
    }
    for (size_t k = count_; k-- > 0;) {
      const OpId id = result_.topological[k];
      const std::vector<OpId>& next = graph_.ops[id].next;
      if (result_.floats[id] || in_trunk_[id] || feeds_[id] || next.empty()) continue;
      int branch = -1;
      for (const OpId op : next) {
        if (result_.epilogue[op]) continue;
        if (serves[op] < 0 || (branch >= 0 && serves[op] != branch)) {
          branch = -1;
          break;
        }
        branch = serves[op];
      }
      if (branch < 0) continue;
      serves[id] = branch;
      result_.branches[branch].makers.push_back(id);
    }
  }

  // Sums up the branch's gradients, and finds its first operator with a gradient and its peak
  // in its present order.
  void weigh(UpdateBranch& branch) const {
    std::vector<std::pair<int, size_t>> last_use;  // value, position
    for (size_t k = 0; k < branch.ops.size(); ++k) {
      for (const int v : graph_.ops[branch.ops[k]].values) last_use.emplace_back(v, k);
    }
    std::sort(last_use.begin(), last_use.end());
    std::vector<int64_t> change(branch.ops.size() + 1, 0);
    size_t first_use = branch.ops.size();
    for (size_t i = 0; i < last_use.size(); ++i) {
      const size_t first = i;
      const int v = last_use[i].first;
      while (i + 1 < last_use.size() && last_use[i + 1].first == v) ++i;
      const OrderGraph::Value& value = graph_.values[v];
      const bool from_outside = std::any_of(value.touchers.begin(), value.touchers.end(),
                                            [&](OpId op) { return !result_.floats[op]; });
      if (from_outside) {
        branch.gradients += value.size;
        first_use = std::min(first_use, last_use[first].second);
      }
      change[from_outside ? 0 : last_use[first].second] += value.size;
      change[last_use[i].second + 1] -= value.size;
    }
    branch.first = branch.ops[first_use < branch.ops.size() ? first_use : 0];
    int64_t live = 0;
    for (size_t k = 0; k < branch.ops.size(); ++k) {
      live += change[k];
      branch.most_memory =
          std::max(branch.most_memory, live + graph_.ops[branch.ops[k]].workspace);
    }
  }

  const Problem& problem_;
  const OrderGraph& graph_;
  size_t count_;
  Phases result_;
  bool labelled_ = false;
  std::vector<bool> at_start_, at_end_;      // per root
  std::vector<std::vector<OpId>> touchers_;  // per root, in topological order
  std::vector<bool> after_gradient_, is_update_, in_trunk_, feeds_;  // per operator
  std::vector<OpId> gradient_writers_;
};

}  // namespace

Phases find_phases(const Problem& problem, const OrderGraph& graph) {
  return PhaseFinder(problem, graph).run();
}

}  // namespace tidemark::planner::roam
