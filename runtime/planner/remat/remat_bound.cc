#include "runtime/planner/remat/remat_bound.h"

#include <algorithm>
#include <limits>

#include "runtime/planner/remat/moment_program.h"
#include "runtime/planner/remat/remat_evaluation.h"
#include "runtime/planner/remat/remat_start.h"

namespace tidemark::planner::remat {
namespace {

// Numbers of moments, in the order tried. More moments see more of the memory, but with them
// a linear program may split a run over more windows.
constexpr size_t kMoments[] = {3, 5, 8};
constexpr size_t kMomentsOfInteger[] = {4, 8};
constexpr int64_t kUnlimited = int64_t{1} << 61;

// What a node holds at least when it runs, by its smallest first or later variant.
int64_t least_memory(const Options& options, const ForcedRuns& forced, NodeId i) {
  const Problem& problem = options.problem();
  int64_t fixed = problem.fixed_bytes + options.adds_fixed(i);
  for (const NodeId j : forced.nodes()) {
    if (j != i && forced.is_before(j, i)) fixed += options.adds_fixed(j);
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const OptionId o : options.of_node(i)) {
    const auto choices = options.choices(o, false);
    if (choices.empty()) continue;
    int64_t sum = fixed + choices.front().need;
    bool is_listed = options.overwrites(o) == kNoNode;
    for (const NodeId u : options.inputs(o)) {
      sum += options.bytes(u);
      is_listed = is_listed || u == options.overwrites(o);
    }
    if (!is_listed) sum += options.bytes(options.overwrites(o));
    least = std::min(least, sum);
  }
  return least;
}

}  // namespace

std::vector<NodeId> choose_moments(const Options& options, const ForcedRuns& forced,
                                   size_t count) {
  const std::vector<NodeId> chain = forced.chain();
  const std::optional<Sequence> all = keep_all(options, FirstOrder::kAsListed);
  if (!all) return {};
  Evaluator evaluator(options);
  if (evaluator.evaluate(*all).conflict != Conflict::kNone) return {};
  std::vector<int64_t> shortage(options.problem().nodes.size(),
                                std::numeric_limits<int64_t>::min());
  for (int32_t k = 0; k < static_cast<int32_t>(all->size()); ++k) {
    if (evaluator.is_idle(k)) continue;
    const OptionId o = (*all)[k];
    shortage[options.node(o)] =
        options.choices(o, false).back().need - evaluator.slack(k);
  }
  std::vector<NodeId> scarce;
  for (const NodeId i : chain) {
    if (shortage[i] > 0) scarce.push_back(i);
  }
  if (scarce.size() <= count) return scarce;
  // One of each part of the chain: the one with the greatest shortage.
  std::vector<NodeId> moments;
  for (size_t part = 0; part < count; ++part) {
    const auto begin = scarce.begin() + static_cast<int64_t>(scarce.size() * part / count);
    const auto end = scarce.begin() + static_cast<int64_t>(scarce.size() * (part + 1) / count);
    moments.push_back(*std::max_element(
        begin, end, [&](NodeId a, NodeId b) { return shortage[a] < shortage[b]; }));
  }
  return moments;
}

TimeBound bound_time(const Options& options, const BoundOptions& bound) {
  const Stopwatch watch(bound.limits);
  TimeBound result;
  const ForcedRuns forced(options);
  if (!forced.possible()) {
    result.feasible = false;
    return result;
  }
  Limits at_once;
  at_once.seconds = std::max(0.05 * bound.limits.seconds, 0.0);
  at_once.stop = bound.limits.stop;
  const double enough = bound.enough > 0 ? bound.enough : std::numeric_limits<double>::infinity();
  const auto improve = [&](const BoxProgram& program, double seconds) {
    Limits limits = bound.limits;
    limits.seconds = std::min(seconds, watch.left());
    result.time = std::max(result.time, lower_bound(program, limits, enough).bound);
  };
  improve(make_moment_program(options, forced, {}), at_once.seconds);
  const size_t steps = std::size(kMoments) + (bound.integer ? 2 * std::size(kMomentsOfInteger) : 0);
  size_t left = steps;
  std::vector<NodeId> last;
  for (const size_t count : kMoments) {
    const std::vector<NodeId> moments = choose_moments(options, forced, count);
    if (result.time >= enough || watch.expired() || moments.empty() || moments == last) break;
    improve(make_moment_program(options, forced, moments),
            watch.left() / static_cast<double>(left--));
    last = moments;
  }
  for (const size_t count : kMomentsOfInteger) {
    if (!bound.integer || result.time >= enough || watch.expired()) break;
    const std::vector<NodeId> moments = choose_moments(options, forced, count);
    if (moments.empty()) break;
    const double share = count == kMomentsOfInteger[0] ? 0.4 : 1.0;
    result.time = std::max(result.time,
                           bound.integer(make_moment_program(options, forced, moments),
                                         watch.left() * share));
  }
  result.seconds = watch.seconds();
  return result;
}

int64_t bound_budget(const Problem& problem) {
  const Options options(problem, kUnlimited);
  const ForcedRuns forced(options);
  int64_t most = problem.fixed_bytes;
  for (const NodeId i : forced.nodes()) most = std::max(most, least_memory(options, forced, i));
  return most;
}

}  // namespace tidemark::planner::remat
