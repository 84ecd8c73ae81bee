#include "runtime/planner/roam/roam.h"

#include <algorithm>
#include <thread>

#include "runtime/core/errors.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/roam/layout.h"
#include "runtime/planner/roam/parallel.h"

namespace tidemark::planner::roam {
namespace {

class Roam {
 public:
  Roam(const Problem& problem, const RoamOptions& options)
      : problem_(problem),
        options_(options),
        watch_(options.limits),
        graph_(problem),
        phases_(find_phases(problem, graph_)) {
    threads_ = options.threads > 0
                   ? options.threads
                   : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    if (options.tree) {
      tree_ = make_subgraph_tree(graph_, phases_, options.subgraphs);
    } else {
      const int turn = phases_.turn, end = phases_.segments();
      tree_.nodes.push_back({0, turn, turn, end, {}});
      tree_.leaves.push_back(0);
    }
    place_updates(graph_, options.updates, phases_);
  }

  Plan run() { return run(make_order()); }

  std::vector<OpId> make_order() const {
    const std::vector<int> piece_of_segment = pieces();
    std::vector<int> piece_of(graph_.size());
    std::vector<std::vector<OpId>> members(piece_of_segment.back() + 1);
    for (size_t i = 0; i < graph_.size(); ++i) {
      piece_of[i] = piece_of_segment[phases_.segment[i]];
      members[piece_of[i]].push_back(static_cast<OpId>(i));
    }
    const Stopwatch watch = watch_.share(0.5);
    std::vector<std::vector<OpId>> orders(members.size());
    run_parallel(members.size(), threads_, [&](size_t piece) {
      orders[piece] = order_piece(members[piece], piece_of, watch);
    });
    std::vector<OpId> order;  // (3)
    for (const auto& part : orders) order.insert(order.end(), part.begin(), part.end());
    return order;
  }

  Plan run(const std::vector<OpId>& order) {
    const Timeline timeline = make_timeline(order);
    ConcatenationOptions layout{options_.owners, options_.activations_below,
                                options_.concatenate, threads_, options_.limits};
    layout.limits.seconds = std::max(0.0, watch_.left());
    Plan plan =
        assemble(problem_, order, options_.in_place, [&](const std::vector<Buffer>& buffers) {
          return lay_out(buffers, timeline, options_.leaves.layout, layout);
        });
    plan.bound = load_bound(problem_);
    plan.seconds = watch_.seconds();
    plan.method = "ROAM";
    return plan;
  }

 private:
  // Per segment: the piece of the order that it belongs to. Pieces come in the order of their
  // segments.
  std::vector<int> pieces() const {
    std::vector<int> piece(phases_.segments(), 0);
    if (!options_.segments) return piece;
    std::vector<bool> begins(phases_.segments() + 1, !options_.tree);
    for (const int leaf : tree_.leaves) {
      const SubgraphNode& node = tree_.nodes[leaf];
      begins[node.forward_begin] = begins[node.backward_begin] = true;
    }
    for (int s = 1; s < phases_.segments(); ++s) piece[s] = piece[s - 1] + (begins[s] ? 1 : 0);
    return piece;
  }

  std::vector<OpId> order_piece(const std::vector<OpId>& members,
                                const std::vector<int>& piece_of,
                                const Stopwatch& watch) const {
    if (members.size() < 2) return members;
    const Problem leaf = problem_of(members, piece_of);
    Limits limits = options_.limits;
    limits.seconds = std::max(0.0, watch.left());
    std::vector<OpId> order = options_.leaves.order(leaf, limits);
    std::vector<bool> seen(members.size(), false);
    TIDEMARK_CHECK(order.size() == members.size(), "a leaf's order is not complete");
    for (OpId& op : order) {
      TIDEMARK_CHECK(op >= 0 && op < static_cast<OpId>(seen.size()) && !seen[op],
                     "a leaf's order is a permutation");
      seen[op] = true;
      op = members[op];
    }
    return order;
  }

  // Members and the leaf's operators are in program order.
  Problem problem_of(const std::vector<OpId>& members, const std::vector<int>& piece_of) const {
    const int piece = piece_of[members.front()];
    const auto local = [&](OpId op) {
      return static_cast<OpId>(std::lower_bound(members.begin(), members.end(), op) -
                               members.begin());
    };
    Problem leaf;
    leaf.operators.resize(members.size());
    std::vector<int> values;
    for (size_t k = 0; k < members.size(); ++k) {
      const OrderGraph::Op& from = graph_.ops[members[k]];
      Operator& op = leaf.operators[k];
      op.name = problem_.operators[members[k]].name;
      op.workspace = Bytes(from.workspace);
      for (const OpId before : from.before) {
        if (piece_of[before] == piece) op.after.push_back(local(before));
      }
      values.insert(values.end(), from.values.begin(), from.values.end());
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (const int v : values) add_value(graph_.values[v], piece_of, piece, local, leaf);
    return leaf;
  }

  template <class Local>
  static void add_value(const OrderGraph::Value& value, const std::vector<int>& piece_of,
                        int piece, const Local& local, Problem& leaf) {
    Storage storage;
    storage.size = Bytes(value.size);
    storage.at_start = value.writer == kNone;
    storage.at_end = value.kept;
    for (const OpId op : value.touchers) {
      if (piece_of[op] < piece) storage.at_start = true;
      if (piece_of[op] > piece) storage.at_end = true;
    }
    if (storage.at_start && storage.at_end) return;
    const auto id = static_cast<StorageId>(leaf.storages.size());
    for (const OpId op : value.touchers) {
      if (piece_of[op] != piece) continue;
      Operator& toucher = leaf.operators[local(op)];
      (op == value.writer ? toucher.outputs : toucher.inputs).push_back(id);
    }
    leaf.storages.push_back(std::move(storage));
  }

  Timeline make_timeline(const std::vector<OpId>& order) const {
    std::vector<int> leaf_of(phases_.segments(), 0);
    for (size_t leaf = 0; leaf < tree_.leaves.size(); ++leaf) {
      const SubgraphNode& node = tree_.nodes[tree_.leaves[leaf]];
      for (int s = node.forward_begin; s < node.forward_end; ++s) {
        leaf_of[s] = static_cast<int>(leaf);
      }
      for (int s = node.backward_begin; s < node.backward_end; ++s) {
        leaf_of[s] = static_cast<int>(leaf);
      }
    }
    Timeline timeline;
    timeline.leaves = static_cast<int>(tree_.leaves.size());
    for (const OpId op : order) {
      timeline.leaf.push_back(leaf_of[phases_.segment[op]]);
      timeline.is_forward.push_back(phases_.segment[op] < phases_.turn);
    }
    return timeline;
  }

  const Problem& problem_;
  const RoamOptions& options_;
  const Stopwatch watch_;
  const OrderGraph graph_;
  Phases phases_;
  SubgraphTree tree_;
  int threads_ = 1;
};

}  // namespace

Plan roam(const Problem& problem, const RoamOptions& options) {
  check_problem(problem);
  return Roam(problem, options).run();
}

std::vector<OpId> roam_order(const Problem& problem, const RoamOptions& options) {
  check_problem(problem);
  return Roam(problem, options).make_order();
}

Plan roam_layout(const Problem& problem, const std::vector<OpId>& order,
                 const RoamOptions& options) {
  check_problem(problem);
  return Roam(problem, options).run(order);
}

namespace {

Plan run_as_method(const Problem& problem, const PlannerOptions& options, RoamOptions mine) {
  mine.limits.seconds = options.limits.seconds;
  mine.limits.nodes = std::min(mine.limits.nodes, options.limits.nodes);
  mine.limits.seed = options.limits.seed;
  return options.reorder ? roam(problem, mine)
                         : roam_layout(problem, program_order(problem), mine);
}

}  // namespace

Plan roam_method(const Problem& problem, const PlannerOptions& options) {
  return run_as_method(problem, options, {});
}

Plan roam_without(const Ablation& ablation, const Problem& problem,
                  const PlannerOptions& options) {
  RoamOptions mine;
  ablation.change(mine);
  Plan plan = run_as_method(problem, options, mine);
  plan.method += ", " + ablation.what;
  return plan;
}

const std::vector<Ablation>& ablations() {
  static const auto* const all = new std::vector<Ablation>{
      {"roam-no-segments", "one order for all", [](RoamOptions& o) { o.segments = false; }},
      {"roam-no-tree", "one layout for all", [](RoamOptions& o) { o.tree = false; }},
      {"roam-updates-at-once", "updates at once",
       [](RoamOptions& o) { o.updates.placement = UpdatePlacement::kAtOnce; }},
      {"roam-updates-last", "updates last",
       [](RoamOptions& o) { o.updates.placement = UpdatePlacement::kLast; }},
      {"roam-no-owners", "laid out where made", [](RoamOptions& o) { o.owners = false; }},
      {"roam-activations-anywhere", "activations anywhere",
       [](RoamOptions& o) { o.activations_below = false; }},
      {"roam-stacked", "leaves stacked", [](RoamOptions& o) { o.concatenate = false; }},
      {"roam-merged", "small leaves merged", [](RoamOptions& o) { o.subgraphs.merge = true; }},
      {"roam-in-place", "in place", [](RoamOptions& o) { o.in_place = true; }},
  };
  return *all;
}

}  // namespace tidemark::planner::roam
