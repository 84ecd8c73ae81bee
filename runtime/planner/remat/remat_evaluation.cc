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

bool Run::choose(const Options& options, OptionId option, int64_t bytes) {
  const std::span<const Choice> choices = options.choices(option, again, place);
  if (choices.empty() || (again && options.once(options.node(option)))) return false;
  size_t fastest = choices.size() - 1;
  while (fastest > 0 && choices[fastest].need > bytes) --fastest;
  choice = &choices[fastest];
  slack = bytes;
  over = std::max<int64_t>(choice->need - slack, 0);
  low = choice->need;
  high = fastest + 1 < choices.size() ? choices[fastest + 1].need
                                      : std::numeric_limits<int64_t>::max();
  return true;
}

Evaluation Evaluator::evaluate(const Sequence& sequence) {
  runs_.resize(sequence.size());
  Evaluation result = find_late(sequence);
  if (result.conflict == Conflict::kNone) result = find_lives(sequence);
  if (result.conflict == Conflict::kNone) find_cost(sequence, result);
  return result;
}

Evaluation Evaluator::find_late(const Sequence& sequence) {
  if (!options_.has_after()) return {};
  std::fill(ran_.begin(), ran_.end(), uint8_t{0});
  for (size_t k = 0; k < sequence.size(); ++k) {
    const NodeId node = options_.node(sequence[k]);
    if (ran_[node] != 0) return conflict(Conflict::kLate, static_cast<int32_t>(k), node);
    for (const NodeId u : options_.after(node)) ran_[u] = 1;
  }
  return {};
}

Evaluation Evaluator::find_lives(const Sequence& sequence) {
  Evaluation result;
  std::fill(needed_.begin(), needed_.end(), uint8_t{0});
  std::fill(ran_.begin(), ran_.end(), uint8_t{0});
  int required = 0;
  for (size_t k = 0; k < sequence.size(); ++k) {
    const NodeId node = options_.node(sequence[k]);
    runs_[k].is_first = ran_[node] == 0 && options_.must_run(node);
    required += runs_[k].is_first ? 1 : 0;
    ran_[node] = 1;
  }
  copies_.resize(sequence.size() / kCopyEvery + 1);
  int64_t live = 0;
  int needed_count = 0;
  bool has_rider = false;  // the run before must not be idle
  for (auto k = static_cast<int32_t>(sequence.size()) - 1; k >= 0; --k) {
    const OptionId option = sequence[k];
    const NodeId node = options_.node(option);
    Run& run = runs_[k];
    const int needed = needed_[node];
    run.needed = needed != 0;
    run.is_idle = needed == 0 && !has_rider && !run.is_first;
    if (run.is_idle) {
      result.has_idle = true;
      continue;
    }
    needed_[node] = 0;
    needed_count -= needed;
    live -= options_.bytes(node) * needed;
    const NodeId overwritten = options_.overwrites(option);
    if (overwritten != kNoNode && needed_[overwritten]) {
      return conflict(Conflict::kOverwritten, k, overwritten);
    }
    run.place = find_place(options_, option, [&](NodeId u) { return needed_[u] != 0; });
    run.last_uses = 0;
    uint64_t bit = 1;
    // No branch here depends on what is live.
    for (const NodeId u : options_.inputs(option)) {
      const int is_new = 1 - needed_[u];
      needed_[u] = 1;
      needed_count += is_new;
      live += options_.bytes(u) * is_new;
      run.last_uses |= is_new != 0 ? bit : 0;
      bit <<= 1;
    }
    run.before = live;
    has_rider = options_.rider_of(option) != kNoNode;
    if (has_rider && (k == 0 || !options_.goes_with(option, sequence[k - 1]))) {
      return conflict(Conflict::kRider, k, node);
    }
    if (k % kCopyEvery == 0) copies_[k / kCopyEvery] = needed_;
  }
  if (needed_count > 0 || required < required_) {
    return conflict(Conflict::kMissing, -1, kNoNode);
  }
  return result;
}

void Evaluator::find_cost(const Sequence& sequence, Evaluation& result) {
  std::fill(ran_.begin(), ran_.end(), uint8_t{0});
  int64_t free = options_.budget() - options_.problem().fixed_bytes;
  for (size_t k = 0; k < sequence.size(); ++k) {
    Run& run = runs_[k];
    if (run.is_idle) continue;
    const OptionId option = sequence[k];
    const NodeId node = options_.node(option);
    run.again = ran_[node] != 0;
    ran_[node] = 1;
    free -= options_.adds_fixed(node);
    if (!run.choose(options_, option, free - run.before)) {
      result = conflict(Conflict::kOccasion, static_cast<int32_t>(k), node);
      return;
    }
    result.time += run.choice->time;
    result.overflow += run.over;
  }
}

void Evaluator::needed_before(const Sequence& sequence, int32_t at,
                              std::vector<uint8_t>& needed) const {
  const auto length = static_cast<int32_t>(sequence.size());
  int32_t k = (at + kCopyEvery - 1) / kCopyEvery * kCopyEvery;
  if (k < length) {
    needed = copies_[k / kCopyEvery];
  } else {
    needed.assign(needed_.size(), 0);
    k = length;
  }
  while (k-- > at) {
    needed[options_.node(sequence[k])] = 0;
    for (const NodeId u : options_.inputs(sequence[k])) needed[u] = 1;
  }
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
    if (evaluator.run(k).is_idle) continue;
    const OptionId option = sequence[k];
    const auto touch = [&](NodeId i, bool is_freed) {
      if (!needed[i] && is_freed) freed[k].push_back(i);
      needed[i] = 1;
    };
    touch(options.node(option), true);
    needed[options.node(option)] = 0;
    const Node& node = options.problem().nodes[options.node(option)];
    const NodeId overwritten = node.variants[evaluator.run(k).choice->variant].overwrites;
    for (const NodeId u : options.inputs(option)) touch(u, u != overwritten);
  }
  schedule.peak = options.problem().fixed_bytes;
  for (int32_t k = 0; k < length; ++k) {
    if (evaluator.run(k).is_idle) continue;
    const Run& run = evaluator.run(k);
    schedule.events.push_back({options.node(sequence[k]), run.choice->variant});
    for (const NodeId i : freed[k]) schedule.events.push_back({i, Event::kFree});
    schedule.peak = std::max(schedule.peak, options.budget() - run.slack + run.choice->need);
    schedule.time += run.choice->time;
  }
  return schedule;
}

}  // namespace tidemark::planner::remat
