#include "runtime/planner/remat/remat_bound.h"

#include <algorithm>
#include <limits>

#include "runtime/planner/remat/remat_evaluation.h"
#include "runtime/planner/remat/remat_start.h"

namespace tidemark::planner::remat {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 61;
constexpr double kTolerance = 1e-6;

// What the node holds by its smallest option, its inputs among it.
int64_t own_memory(const Options& options, NodeId i) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const OptionId o : options.of_node(i)) {
    const auto choices = options.choices(o, false);
    if (choices.empty()) continue;
    int64_t sum = choices.front().need;
    for (const NodeId u : options.inputs(o)) sum += options.bytes(u);
    least = std::min(least, sum);
  }
  return least;
}

// What a node holds at least when it runs, by its smallest first or later variant.
int64_t least_memory(const Options& options, const ForcedRuns& forced, NodeId i) {
  const Problem& problem = options.problem();
  int64_t fixed = problem.fixed_bytes + options.adds_fixed(i);
  for (const NodeId j : forced.nodes()) {
    if (j != i && forced.is_before(j, i)) fixed += options.adds_fixed(j);
  }
  const int64_t own = own_memory(options, i);
  return own == std::numeric_limits<int64_t>::max() ? own : fixed + own;
}

// Nodes of the chain at which memory is short if everything is kept, most of all first.
std::vector<NodeId> scarce_nodes(const Options& options, const ForcedRuns& forced) {
  const std::optional<Sequence> all =
      keep_all(options, FirstOrder::kAsListed, Preference::kFastest);
  if (!all) return {};
  Evaluator evaluator(options);
  if (evaluator.evaluate(*all).conflict != Conflict::kNone) return {};
  std::vector<int64_t> shortage(options.problem().nodes.size(), 0);
  for (int32_t k = 0; k < static_cast<int32_t>(all->size()); ++k) {
    if (evaluator.run(k).is_idle) continue;
    const OptionId o = (*all)[k];
    shortage[options.node(o)] = options.choices(o, false).back().need - evaluator.run(k).slack;
  }
  std::vector<NodeId> scarce;
  for (const NodeId i : forced.chain()) {
    if (shortage[i] > 0) scarce.push_back(i);
  }
  std::stable_sort(scarce.begin(), scarce.end(),
                   [&](NodeId a, NodeId b) { return shortage[a] > shortage[b]; });
  return scarce;
}

class TimeBounder {
 public:
  TimeBounder(const Options& options, const BoundOptions& bound)
      : options_(options),
        bound_(bound),
        watch_(bound.limits),
        forced_(options),
        enough_(bound.enough > 0 ? bound.enough : kInfinite) {}

  TimeBound run() {
    if (!forced_.possible()) {
      result_.feasible = false;
      return result_;
    }
    chain_ = forced_.chain();
    scarce_ = scarce_nodes(options_, forced_);
    choose_candidates();
    best_of_linear({}, kLongRun);
    const double linear_share = bound_.integer ? kLinearShare : 1.0;
    const Stopwatch linear = watch_.share(linear_share);
    while (moments_.size() < kMaxMoments && !is_over(linear) && add_moment(linear)) {
    }
    if (!is_over(linear)) best_of_linear(moments_, kLongRun);
    if (bound_.integer) solve_integer();
    result_.seconds = watch_.seconds();
    return result_;
  }

 private:
  bool is_over(const Stopwatch& watch) const {
    return !result_.feasible || result_.time >= enough_ || watch.expired() ||
           iterations_ >= bound_.limits.nodes;
  }

  // The linear bound of a set of moments; keeps the best.
  double best_of_linear(const std::vector<NodeId>& moments, int64_t iterations) {
    Limits limits = bound_.limits;
    limits.seconds = std::max(watch_.left(), 0.0);
    limits.nodes = std::min(iterations, bound_.limits.nodes - iterations_);
    const MomentProgram program = make_moment_program(options_, forced_, moments);
    const LinearBound found = best_bound(program.linear, limits, enough_ - program.constant);
    iterations_ += found.iterations;
    const double bound = program.constant + found.bound;
    // A relaxation that costs more than all its variables at once has no solution.
    double most = 0;
    for (size_t v = 0; v < program.linear.variables(); ++v) most += program.linear.price(v);
    if (found.bound > most * (1 + kTolerance)) result_.feasible = false;
    result_.time = std::max(result_.time, bound);
    return bound;
  }

  std::vector<NodeId> with(NodeId extra) const {
    std::vector<NodeId> moments;
    for (const NodeId i : chain_) {
      const bool is_in = std::count(moments_.begin(), moments_.end(), i) > 0;
      if (is_in || i == extra) moments.push_back(i);
    }
    return moments;
  }

  // Some of the scarce nodes: those that hold most by themselves, and leave least to others;
  // and some spread over the list, the scarcest first.
  void choose_candidates() {
    std::vector<NodeId> heavy = scarce_;
    std::stable_sort(heavy.begin(), heavy.end(), [&](NodeId a, NodeId b) {
      return own_memory(options_, a) > own_memory(options_, b);
    });
    const auto add = [&](NodeId i) {
      if (std::count(candidates_.begin(), candidates_.end(), i) == 0) candidates_.push_back(i);
    };
    for (size_t k = 0; k < kCandidates && k < scarce_.size(); ++k) {
      add(heavy[k]);
      add(scarce_[k * scarce_.size() / kCandidates]);
    }
  }

  // Adds the moment that raises the bound most, of the candidates. False if none does.
  bool add_moment(const Stopwatch& watch) {
    NodeId best = kNoNode;
    double most = moments_.empty() ? -kInfinite : result_.time;
    for (const NodeId candidate : candidates_) {
      if (is_over(watch)) break;
      if (std::count(moments_.begin(), moments_.end(), candidate) > 0) continue;
      const double found = best_of_linear(with(candidate), kShortRun);
      if (found <= most) continue;
      most = found;
      best = candidate;
    }
    if (best == kNoNode) return false;
    moments_ = with(best);
    added_.push_back(best);
    return true;
  }

  // With more and more moments, since integers cannot be split over windows: the ones that were
  // added first, then all, then others between them.
  void solve_integer() {
    const std::vector<NodeId> all = moments_;
    std::vector<NodeId> last;
    for (const size_t count : kIntegerMoments) {
      if (count < added_.size()) {
        moments_.assign(added_.begin(), added_.begin() + static_cast<int64_t>(count));
        moments_ = with(kNoNode);
      } else {
        moments_ = all;
        if (count > kMaxLinearFirst) spread_moments(count);
      }
      if (is_over(watch_)) return;
      if (moments_.empty() || moments_ == last) continue;
      last = moments_;
      const MomentProgram program = make_moment_program(options_, forced_, moments_);
      const bool is_last = count == *std::rbegin(kIntegerMoments);
      const double seconds = watch_.left() * (is_last ? 1.0 : kIntegerShare);
      result_.time = std::max(result_.time, bound_.integer(program, seconds));
    }
  }

  // Adds moments up to `count`, each in the middle of the longest stretch of scarce nodes
  // without one.
  void spread_moments(size_t count) {
    std::vector<NodeId> scarce;
    for (const NodeId i : chain_) {
      if (std::count(scarce_.begin(), scarce_.end(), i) > 0) scarce.push_back(i);
    }
    while (moments_.size() < std::min(count, scarce.size())) {
      size_t begin = 0, longest = 0, middle = 0;
      for (size_t k = 0; k <= scarce.size(); ++k) {
        const bool is_end =
            k == scarce.size() || std::count(moments_.begin(), moments_.end(), scarce[k]) > 0;
        if (!is_end) continue;
        if (k - begin > longest) {
          longest = k - begin;
          middle = begin + longest / 2;
        }
        begin = k + 1;
      }
      if (longest == 0) return;
      moments_ = with(scarce[middle]);
    }
  }

  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  static constexpr size_t kMaxMoments = 8, kCandidates = 6;
  static constexpr size_t kIntegerMoments[] = {1, 2, 4, 6, 9, 13}, kMaxLinearFirst = 2;
  static constexpr double kIntegerShare = 0.5;
  static constexpr int64_t kShortRun = 4000, kLongRun = 100'000;  // iterations
  static constexpr double kLinearShare = 0.3;

  const Options& options_;
  const BoundOptions& bound_;
  Stopwatch watch_;
  ForcedRuns forced_;
  double enough_;
  TimeBound result_;
  std::vector<NodeId> chain_, scarce_, candidates_;
  std::vector<NodeId> moments_, added_;  // in the chain's order; as they were added
  int64_t iterations_ = 0;
};

}  // namespace

TimeBound bound_time(const Options& options, const BoundOptions& bound) {
  return TimeBounder(options, bound).run();
}

int64_t bound_budget(const Problem& problem) {
  const Options options(problem, kUnlimited);
  const ForcedRuns forced(options);
  int64_t most = problem.fixed_bytes;
  for (const NodeId i : forced.nodes()) most = std::max(most, least_memory(options, forced, i));
  return most;
}

}  // namespace tidemark::planner::remat
