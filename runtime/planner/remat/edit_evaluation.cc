#include "runtime/planner/remat/edit_evaluation.h"

#include <algorithm>

namespace tidemark::planner::remat {

EditEvaluator::EditEvaluator(const Options& options)
    : options_(options),
      anchored_(options),
      full_(options),
      difference_(options.problem().nodes.size(), 0),
      in_new_(options.problem().nodes.size(), 0) {}

Evaluation EditEvaluator::anchor(const Sequence& sequence) {
  ++count_;
  anchor_ = sequence;
  const Evaluation result = anchored_.evaluate(sequence);
  idle_.clear();
  is_usable_ = result.conflict == Conflict::kNone && !result.has_idle;
  const auto length = static_cast<int32_t>(sequence.size());
  if (!is_usable_) {
    for (int32_t k = length; result.conflict == Conflict::kNone && k-- > 0;) {
      if (anchored_.run(k).is_idle) idle_.push_back(k);
    }
    return result;
  }
  time_.assign(1, 0.0);
  overflow_.assign(1, 0);
  fixed_.assign(1, 0);
  first_.assign(options_.problem().nodes.size(), -1);
  last_ = first_;
  for (int32_t k = 0; k < length; ++k) {
    const Run& run = anchored_.run(k);
    const NodeId node = options_.node(sequence[k]);
    time_.push_back(time_.back() + run.choice->time);
    overflow_.push_back(overflow_.back() + run.over);
    fixed_.push_back(fixed_.back() + options_.adds_fixed(node));
    if (first_[node] < 0) first_[node] = k;
    last_[node] = k;
  }
  return result;
}

bool EditEvaluator::needed_before(const Sequence& sequence, int32_t at,
                                  std::vector<uint8_t>& needed) const {
  if (!is_usable_ || !is_anchor(sequence)) return false;
  anchored_.needed_before(anchor_, at, needed);
  return true;
}

Evaluation EditEvaluator::evaluate(const Sequence& sequence) {
  ++count_;
  idle_.clear();
  result_ = full_.find_late(sequence);
  if (result_.conflict != Conflict::kNone) return result_;
  if (is_usable_) find_range(sequence);
  if (is_usable_ && keeps_first_runs(sequence)) {
    const bool done =
        find_new_lives(sequence) && find_new_cost(sequence) && walk_prefix(sequence);
    std::fill(difference_.begin(), difference_.end(), int8_t{0});
    if (result_.conflict != Conflict::kNone) return result_;
    if (done) {
      result_.has_idle = !idle_.empty();
      return result_;
    }
  }
  idle_.clear();
  result_ = full_.evaluate(sequence);
  if (result_.conflict == Conflict::kNone && result_.has_idle) {
    for (auto k = static_cast<int32_t>(sequence.size()); k-- > 0;) {
      if (full_.run(k).is_idle) idle_.push_back(k);
    }
  }
  return result_;
}

void EditEvaluator::drop_idle(Sequence& sequence) const {
  for (const int32_t k : idle_) sequence.erase(sequence.begin() + k);
}

bool EditEvaluator::fail(Conflict kind, int32_t at, NodeId value) {
  result_ = {};
  result_.conflict = kind;
  result_.at = at;
  result_.value = value;
  return false;
}

void EditEvaluator::find_range(const Sequence& sequence) {
  const auto old_length = static_cast<int32_t>(anchor_.size());
  const auto new_length = static_cast<int32_t>(sequence.size());
  const int32_t most = std::min(old_length, new_length);
  begin_ = static_cast<int32_t>(
      std::mismatch(anchor_.begin(), anchor_.begin() + most, sequence.begin()).first -
      anchor_.begin());
  int32_t same = 0;
  while (same < most - begin_ &&
         anchor_[old_length - 1 - same] == sequence[new_length - 1 - same]) {
    ++same;
  }
  old_end_ = old_length - same;
  new_end_ = new_length - same;
}

// Whether each run of the suffix is a first run of its node exactly if it is in the anchor, and
// no node that must run is gone; and the bytes that become fixed are the same.
bool EditEvaluator::keeps_first_runs(const Sequence& sequence) {
  ++stamp_;
  int64_t fixed = 0;
  new_runs_.resize(new_end_ - begin_);
  for (int32_t k = begin_; k < new_end_; ++k) {
    const NodeId node = options_.node(sequence[k]);
    if (first_[node] >= old_end_) return false;
    const bool ran = in_new_[node] == stamp_ || (first_[node] >= 0 && first_[node] < begin_);
    new_runs_[k - begin_].is_first = !ran && options_.must_run(node);
    in_new_[node] = stamp_;
    fixed += options_.adds_fixed(node);
  }
  if (fixed != fixed_[old_end_] - fixed_[begin_]) return false;
  for (int32_t k = begin_; k < old_end_; ++k) {
    const NodeId node = options_.node(anchor_[k]);
    const bool is_lost = first_[node] == k && in_new_[node] != stamp_;
    if (is_lost && (last_[node] >= old_end_ || options_.must_run(node))) return false;
  }
  return true;
}

// Backward over the new range.
bool EditEvaluator::find_new_lives(const Sequence& sequence) {
  anchored_.needed_before(anchor_, old_end_, needed_);
  const bool has_suffix = new_end_ < static_cast<int32_t>(sequence.size());
  int64_t live = has_suffix ? anchored_.run(old_end_).before : 0;
  rider_follows_ = has_suffix && options_.rider_of(sequence[new_end_]) != kNoNode;
  if (rider_follows_ &&
      (new_end_ == 0 || !options_.goes_with(sequence[new_end_], sequence[new_end_ - 1]))) {
    return fail(Conflict::kRider, new_end_, options_.node(sequence[new_end_]));
  }
  for (int32_t k = new_end_; k-- > begin_;) {
    const OptionId option = sequence[k];
    const NodeId node = options_.node(option);
    Run& run = new_runs_[k - begin_];
    run.needed = needed_[node] != 0;
    run.is_idle = !run.needed && !rider_follows_ && !run.is_first;
    if (run.is_idle) {
      idle_.push_back(k);
      continue;
    }
    if (run.needed) live -= options_.bytes(node);
    needed_[node] = 0;
    const NodeId overwritten = options_.overwrites(option);
    if (overwritten != kNoNode && needed_[overwritten]) {
      return fail(Conflict::kOverwritten, k, overwritten);
    }
    run.place = find_place(options_, option, [&](NodeId u) { return needed_[u] != 0; });
    for (const NodeId u : options_.inputs(option)) {
      if (!needed_[u]) live += options_.bytes(u);
      needed_[u] = 1;
    }
    run.before = live;
    rider_follows_ = options_.rider_of(option) != kNoNode;
    if (rider_follows_ && (k == 0 || !options_.goes_with(option, sequence[k - 1]))) {
      return fail(Conflict::kRider, k, node);
    }
  }
  return true;
}

// Forward over the new range.
bool EditEvaluator::find_new_cost(const Sequence& sequence) {
  result_.time = time_[begin_] + (time_.back() - time_[old_end_]);
  result_.overflow = overflow_[begin_] + (overflow_.back() - overflow_[old_end_]);
  ++stamp_;
  int64_t free = options_.budget() - options_.problem().fixed_bytes - fixed_[begin_];
  for (int32_t k = begin_; k < new_end_; ++k) {
    const NodeId node = options_.node(sequence[k]);
    Run& run = new_runs_[k - begin_];
    if (run.is_idle) continue;
    run.again = in_new_[node] == stamp_ || (first_[node] >= 0 && first_[node] < begin_);
    in_new_[node] = stamp_;
    free -= options_.adds_fixed(node);
    if (!run.choose(options_, sequence[k], free - run.before)) {
      return fail(Conflict::kOccasion, k, node);
    }
    result_.time += run.choice->time;
    result_.overflow += run.over;
  }
  // An idle run changes which run is the first, or what is fixed, as if it were not there.
  return std::all_of(idle_.begin(), idle_.end(), [&](int32_t k) {
    const NodeId node = options_.node(sequence[k]);
    const bool had_run = first_[node] >= 0 && first_[node] < begin_;
    return options_.adds_fixed(node) == 0 && (had_run || last_[node] < old_end_);
  });
}

}  // namespace tidemark::planner::remat
