#include "runtime/planner/roam/roam.h"

#include <algorithm>
#include <thread>

#include "runtime/core/errors.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/lifetimes.h"
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
    const Phases before = options.subgraphs.updates ? Phases() : phases_;
    place_updates(graph_, options.updates, phases_);
    if (options.tree) {
      tree_ = make_subgraph_tree(graph_, options.subgraphs.updates ? phases_ : before,
                                 options.subgraphs);
    } else {
      const int turn = phases_.turn, end = phases_.segments();
      tree_.nodes.push_back({0, turn, turn, end, {}});
      tree_.leaves.push_back(0);
    }
  }

  Plan run() { return options_.leaves.timesteps ? run_timesteps().plan : run(make_order()); }

  std::vector<OpId> make_order() const {
    std::vector<OpId> order;
    for (const std::vector<OpId>& step : make_timesteps()) {
      order.insert(order.end(), step.begin(), step.end());
    }
    return order;
  }

  // The operators of each timestep; one in each if there is one stream.
  std::vector<std::vector<OpId>> make_timesteps() const {
    const std::vector<int> piece_of_segment = pieces();
    std::vector<int> piece_of(graph_.size());
    std::vector<std::vector<OpId>> members(piece_of_segment.back() + 1);
    for (size_t i = 0; i < graph_.size(); ++i) {
      piece_of[i] = piece_of_segment[phases_.segment[i]];
      members[piece_of[i]].push_back(static_cast<OpId>(i));
    }
    const auto pieces_to_order = std::count_if(
        members.begin(), members.end(), [](const auto& piece) { return piece.size() > 1; });
    TimeShares shares(watch_.share(0.5), static_cast<size_t>(pieces_to_order), threads_,
                      options_.divide_time);
    std::vector<std::vector<std::vector<OpId>>> parts(members.size());
    run_parallel(members.size(), threads_, [&](size_t piece) {
      parts[piece] = order_piece(members[piece], piece_of, shares);
    });
    std::vector<std::vector<OpId>> all;  // (3)
    for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(all));
    return all;
  }

  Plan run(const std::vector<OpId>& order) {
    Plan plan =
        assemble(problem_, order, options_.in_place,
                 [&](const std::vector<Buffer>& buffers) { return place(order, buffers); });
    finish(plan, "ROAM");
    return plan;
  }

  TimestepPlan run_timesteps() {
    const std::vector<std::vector<OpId>> steps = make_timesteps();
    TimestepPlan result;
    result.timesteps.resize(graph_.size());
    Plan& plan = result.plan;
    std::vector<int64_t> begin;  // of the timestep, per position
    for (size_t step = 0; step < steps.size(); ++step) {
      for (const OpId op : steps[step]) result.timesteps[op] = static_cast<int>(step);
      begin.insert(begin.end(), steps[step].size(), static_cast<int64_t>(plan.order.size()));
      plan.order.insert(plan.order.end(), steps[step].begin(), steps[step].end());
    }
    plan.placements = lifetimes(problem_, plan.order);
    std::vector<Buffer> buffers;
    for (Placement& p : plan.placements) {
      // All that a timestep uses then lives at its first position, apart from one another.
      if (p.begin < p.end) p.begin = begin[p.begin];
      buffers.push_back({p.begin, p.end, p.size});
    }
    const Offsets offsets = place(plan.order, buffers);
    for (size_t k = 0; k < offsets.size(); ++k) plan.placements[k].offset = offsets[k];
    fill_figures(plan);
    finish(plan, "ROAM, several streams");
    return result;
  }

 private:
  Offsets place(const std::vector<OpId>& order, const std::vector<Buffer>& buffers) const {
    ConcatenationOptions layout{options_.owners, options_.activations_below,
                                options_.concatenate, threads_, options_.limits};
    layout.limits.seconds = std::max(0.0, watch_.left());
    layout.divide_time = options_.divide_time;
    return lay_out(buffers, make_timeline(order), options_.leaves.layout, layout);
  }

  void finish(Plan& plan, const char* method) const {
    plan.bound = load_bound(problem_);
    plan.seconds = watch_.seconds();
    plan.method = method;
  }

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

  // The timesteps of a piece.
  std::vector<std::vector<OpId>> order_piece(const std::vector<OpId>& members,
                                             const std::vector<int>& piece_of,
                                             TimeShares& shares) const {
    if (members.size() < 2) {
      return std::vector<std::vector<OpId>>(members.size(), members);
    }
    const Problem leaf = problem_of(members, piece_of);
    Limits limits = options_.limits;
    limits.seconds = shares.next();
    std::vector<std::vector<OpId>> steps(members.size());
    if (options_.leaves.timesteps) {
      const std::vector<int> step_of = options_.leaves.timesteps(leaf, limits);
      TIDEMARK_CHECK(step_of.size() == members.size(), "a leaf's timesteps are not complete");
      for (size_t k = 0; k < step_of.size(); ++k) {
        TIDEMARK_CHECK(step_of[k] >= 0 && step_of[k] < static_cast<int>(steps.size()),
                       "a leaf has no more timesteps than operators");
        steps[step_of[k]].push_back(members[k]);
      }
      std::erase_if(steps, [](const std::vector<OpId>& step) { return step.empty(); });
      return steps;
    }
    const std::vector<OpId> order = options_.leaves.order(leaf, limits);
    std::vector<bool> seen(members.size(), false);
    TIDEMARK_CHECK(order.size() == members.size(), "a leaf's order is not complete");
    for (size_t k = 0; k < order.size(); ++k) {
      const OpId op = order[k];
      TIDEMARK_CHECK(op >= 0 && op < static_cast<OpId>(seen.size()) && !seen[op],
                     "a leaf's order is a permutation");
      seen[op] = true;
      steps[k].push_back(members[op]);
    }
    return steps;
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

TimestepPlan roam_in_timesteps(const Problem& problem, const RoamOptions& options) {
  check_problem(problem);
  TIDEMARK_CHECK(options.leaves.timesteps != nullptr, "a solver for timesteps");
  return Roam(problem, options).run_timesteps();
}

Problem with_barriers(const Problem& problem, const std::vector<int>& timesteps) {
  const int count =
      timesteps.empty() ? 0 : 1 + *std::max_element(timesteps.begin(), timesteps.end());
  std::vector<std::vector<OpId>> members(count);
  for (size_t i = 0; i < timesteps.size(); ++i) {
    members[timesteps[i]].push_back(static_cast<OpId>(i));
  }
  Problem result = problem;
  for (int step = 1; step < count; ++step) {
    const std::vector<OpId>& before = members[step - 1];
    for (const OpId op : members[step]) {
      std::vector<OpId>& after = result.operators[op].after;
      after.insert(after.end(), before.begin(), before.end());
    }
  }
  return result;
}

Plan roam_layout(const Problem& problem, const std::vector<OpId>& order,
                 const RoamOptions& options) {
  check_problem(problem);
  return Roam(problem, options).run(order);
}

Plan roam_method(const Problem& problem, const PlannerOptions& options,
                 const Parameters& parameters, RoamOptions mine) {
  mine.limits.seconds = options.limits.seconds;
  mine.limits.nodes = std::min(mine.limits.nodes, options.limits.nodes);
  mine.limits.seed = options.limits.seed;
  if (parameters.node_limit) mine.subgraphs.node_limit = *parameters.node_limit;
  if (parameters.delay_radius) mine.updates.delay_radius = *parameters.delay_radius;
  if (parameters.delay_coefficient) mine.updates.alpha = *parameters.delay_coefficient;
  return options.reorder ? roam(problem, mine)
                         : roam_layout(problem, program_order(problem), mine);
}

Plan roam_without(const Ablation& ablation, const Problem& problem,
                  const PlannerOptions& options, const Parameters& parameters) {
  RoamOptions mine;
  ablation.change(mine);
  Plan plan = roam_method(problem, options, parameters, mine);
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
      {"roam-updates-apart", "updates apart from the tree",
       [](RoamOptions& o) { o.subgraphs.updates = false; }},
      {"roam-gradients-wait", "gradients made when their updates run",
       [](RoamOptions& o) { o.updates = gradients_that_wait(); }},
      {"roam-merged", "small leaves merged", [](RoamOptions& o) { o.subgraphs.merge = true; }},
      {"roam-in-place", "in place", [](RoamOptions& o) { o.in_place = true; }},
  };
  return *all;
}

}  // namespace tidemark::planner::roam
