#include "runtime/planner/remat/remat_evaluation.h"

#include <algorithm>

#include "runtime/core/errors.h"

namespace tidemark::planner::remat {
namespace {

Evaluation conflict(Conflict kind, int32_t at, NodeId value) {
  Evaluation result;
  result.conflict = kind;
  result.at = at;
  result.value = value;
  return result;
}

}  // namespace

Evaluator::Evaluator(const Options& options)
    : options_(options),
      needed_(options.problem().nodes.size()),
      ran_(options.problem().nodes.size()) {
  for (NodeId i = 0; i < options.problem().size(); ++i)
    required_ += options.must_run(i) ? 1 : 0;
}

Evaluation Evaluator::evaluate(const Sequence& sequence) {
  const size_t length = sequence.size();
  first_.resize(length);
  idle_.assign(length, 0);
  before_.resize(length);
  place_.resize(length);
  slack_.resize(length);
  choice_.resize(length);
  Evaluation result = find_lives(sequence);
  if (result.conflict == Conflict::kNone) find_cost(sequence, result);
  return result;
}

Evaluation Evaluator::find_lives(const Sequence& sequence) {
  Evaluation result;
  std::fill(needed_.begin(), needed_.end(), uint8_t{0});
  std::fill(ran_.begin(), ran_.end(), uint8_t{0});
  int required = 0;
  for (size_t k = 0; k < sequence.size(); ++k) {
    const NodeId node = options_.node(sequence[k]);
    first_[k] = ran_[node] == 0 && options_.must_run(node);
    required += first_[k];
    ran_[node] = 1;
  }
  // This loop is most of a search's time: no branch in it depends on what is live.
  int64_t live = 0;
  int needed_count = 0;
  bool has_rider = false;  // the run before must not be idle
  for (auto k = static_cast<int32_t>(sequence.size()) - 1; k >= 0; --k) {
    const OptionId option = sequence[k];
    const NodeId node = options_.node(option);
    const int needed = needed_[node];
    if (needed == 0 && !has_rider && !first_[k]) {
      idle_[k] = 1;
      result.has_idle = true;
      continue;
    }
    needed_[node] = 0;
    needed_count -= needed;
    live -= options_.bytes(node) * needed;
    const auto use = [&](NodeId u) {
      const int is_new = 1 - needed_[u];
      needed_[u] = 1;
      needed_count += is_new;
      live += options_.bytes(u) * is_new;
    };
    const NodeId overwritten = options_.overwrites(option);
    if (overwritten != kNoNode && needed_[overwritten]) {
      return conflict(Conflict::kOverwritten, k, overwritten);
    }
    place_[k] = find_place(option);
    for (const NodeId u : options_.inputs(option)) use(u);
    before_[k] = live;
    has_rider = options_.rider_of(option) != kNoNode;
    if (has_rider && (k == 0 || !options_.goes_with(option, sequence[k - 1]))) {
      return conflict(Conflict::kRider, k, node);
    }
  }
  if (needed_count > 0 || required < required_) {
    return conflict(Conflict::kMissing, -1, kNoNode);
  }
  return result;
}

// Which value the run may overwrite, given those needed after it.
Place Evaluator::find_place(OptionId option) const {
  const NodeId a = options_.may_overwrite(option, 0), b = options_.may_overwrite(option, 1);
  if (a != kNoNode && !needed_[a]) return kOverFirst;
  return b != kNoNode && !needed_[b] ? kOverSecond : kNotInPlace;
}

void Evaluator::find_cost(const Sequence& sequence, Evaluation& result) {
  std::fill(ran_.begin(), ran_.end(), uint8_t{0});
  int64_t free = options_.budget() - options_.problem().fixed_bytes;
  int64_t worst = 0;
  for (size_t k = 0; k < sequence.size(); ++k) {
    if (idle_[k]) continue;
    const OptionId option = sequence[k];
    const NodeId node = options_.node(option);
    const bool again = ran_[node] != 0;
    ran_[node] = 1;
    free -= options_.adds_fixed(node);
    slack_[k] = free - before_[k];
    const Choice* const choice = options_.pick(option, again, place_[k], slack_[k]);
    if (choice == nullptr || (again && options_.once(node))) {
      result = conflict(Conflict::kOccasion, static_cast<int32_t>(k), node);
      return;
    }
    choice_[k] = choice;
    result.time += choice->time;
    const int64_t over = choice->need - slack_[k];
    if (over <= 0) continue;
    result.overflow += over;
    if (over > worst) {
      worst = over;
      result.at = static_cast<int32_t>(k);
    }
  }
}

void Evaluator::drop_idle(Sequence& sequence) const {
  size_t kept = 0;
  for (size_t k = 0; k < sequence.size(); ++k) {
    if (!idle_[k]) sequence[kept++] = sequence[k];
  }
  sequence.resize(kept);
}

Schedule to_schedule(const Options& options, const Sequence& sequence) {
  Evaluator evaluator(options);
  const Evaluation evaluation = evaluator.evaluate(sequence);
  TIDEMARK_CHECK(evaluation.conflict == Conflict::kNone, "a sequence that cannot run");
  const auto length = static_cast<int32_t>(sequence.size());
  // From the end: a value that is not needed later is freed after the run that touches it.
  std::vector<uint8_t> needed(options.problem().nodes.size());
  std::vector<std::vector<NodeId>> freed(sequence.size());
  Schedule schedule;
  for (int32_t k = length - 1; k >= 0; --k) {
    if (evaluator.is_idle(k)) continue;
    const OptionId option = sequence[k];
    const auto touch = [&](NodeId i, bool is_freed) {
      if (!needed[i] && is_freed) freed[k].push_back(i);
      needed[i] = 1;
    };
    touch(options.node(option), true);
    needed[options.node(option)] = 0;
    const Node& node = options.problem().nodes[options.node(option)];
    const NodeId overwritten = node.variants[evaluator.choice(k).variant].overwrites;
    for (const NodeId u : options.inputs(option)) touch(u, u != overwritten);
  }
  schedule.peak = options.problem().fixed_bytes;
  for (int32_t k = 0; k < length; ++k) {
    if (evaluator.is_idle(k)) continue;
    const Choice& choice = evaluator.choice(k);
    schedule.events.push_back({options.node(sequence[k]), choice.variant});
    for (const NodeId i : freed[k]) schedule.events.push_back({i, Event::kFree});
    schedule.peak =
        std::max(schedule.peak, options.budget() - evaluator.slack(k) + choice.need);
    schedule.time += choice.time;
  }
  return schedule;
}

}  // namespace tidemark::planner::remat
