// The part of an edit's evaluation that walks backward over the runs in front of the range.
#include <algorithm>

#include "runtime/planner/remat/edit_evaluation.h"

namespace tidemark::planner::remat {

void EditEvaluator::set_difference(NodeId u, int value) {
  differences_ += (value != 0 ? 1 : 0) - (difference_[u] != 0 ? 1 : 0);
  more_live_ += options_.bytes(u) * (value - difference_[u]);
  difference_[u] = static_cast<int8_t>(value);
}

// Backward over the prefix, as far as it differs.
bool EditEvaluator::walk_prefix(const Sequence& sequence) {
  anchored_.needed_before(anchor_, begin_, other_);
  differences_ = 0;
  more_live_ = 0;
  const auto compare = [&](NodeId u) { set_difference(u, needed_[u] - other_[u]); };
  const auto compare_range = [&](const Sequence& from, int32_t end) {
    for (int32_t k = begin_; k < end; ++k) {
      compare(options_.node(from[k]));
      for (const NodeId u : options_.inputs(from[k])) compare(u);
    }
  };
  compare_range(anchor_, old_end_);
  compare_range(sequence, new_end_);
  // The run in front of the range may have lost or kept its rider.
  const bool had_rider = begin_ < static_cast<int32_t>(anchor_.size()) &&
                         options_.rider_of(anchor_[begin_]) != kNoNode;
  rider_left_ = had_rider && !rider_follows_;
  for (int32_t k = begin_; k-- > 0 && (differences_ > 0 || rider_left_);) {
    const OptionId option = anchor_[k];
    bool is_touched = difference_[options_.node(option)] != 0;
    for (const NodeId u : options_.inputs(option)) is_touched |= difference_[u] != 0;
    if (is_touched || rider_left_) {
      if (!visit(k)) return false;
    } else {
      const Run& run = anchored_.run(k);
      const int64_t slack = run.slack - more_live_;
      if (slack < run.low || slack >= run.high || run.over > 0) {
        Run after = run;
        if (!after.choose(options_, option, slack)) return false;
        recost(run, after);
      }
    }
  }
  if (differences_ > 0) return fail(Conflict::kMissing, -1, kNoNode);
  return true;
}

void EditEvaluator::recost(const Run& before, const Run& after) {
  result_.time += after.choice->time - before.choice->time;
  result_.overflow += after.over - before.over;
}

// A run of the prefix that touches a value that is needed here and not in the anchor, or the
// other way round. False: evaluate in full.
bool EditEvaluator::visit(int32_t k) {
  const OptionId option = anchor_[k];
  const NodeId node = options_.node(option);
  const Run& run = anchored_.run(k);
  const bool is_needed = (run.needed ? 1 : 0) + difference_[node] > 0;
  const bool had_rider = k + 1 < static_cast<int32_t>(anchor_.size()) &&
                         options_.rider_of(anchor_[k + 1]) != kNoNode;
  const bool has_rider = rider_left_ ? false : (k + 1 == begin_ ? rider_follows_ : had_rider);
  rider_left_ = false;
  set_difference(node, 0);
  if (!is_needed && !has_rider && !run.is_first) return leave_idle(k);
  Run after = run;
  if (!use_inputs(k, after)) return false;
  if (!after.choose(options_, option, run.slack - more_live_)) return false;
  recost(run, after);
  return true;
}

bool EditEvaluator::leave_idle(int32_t k) {
  const OptionId option = anchor_[k];
  const NodeId node = options_.node(option);
  const Run& run = anchored_.run(k);
  const auto inputs = options_.inputs(option);
  // Without it, a later run becomes the first.
  const bool was_first = first_[node] == k && (last_[node] != k || in_new_[node] == stamp_);
  if (was_first || options_.adds_fixed(node) != 0 || inputs.size() > 64) return false;
  idle_.push_back(k);
  result_.time -= run.choice->time;
  result_.overflow -= run.over;
  for (size_t j = 0; j < inputs.size(); ++j) {
    // Here the anchor begins to need it.
    if ((run.last_uses >> j & 1) != 0) set_difference(inputs[j], difference_[inputs[j]] - 1);
  }
  rider_left_ = options_.rider_of(option) != kNoNode;
  return true;
}

bool EditEvaluator::use_inputs(int32_t k, Run& run) {
  const OptionId option = anchor_[k];
  const auto inputs = options_.inputs(option);
  const NodeId overwritten = options_.overwrites(option);
  const bool depends = overwritten != kNoNode || options_.may_overwrite(option, 0) != kNoNode;
  if (depends && inputs.size() > 64) return false;
  const auto is_needed = [&](NodeId u) {
    const auto j = std::find(inputs.begin(), inputs.end(), u) - inputs.begin();
    return ((run.last_uses >> j & 1) != 0 ? 0 : 1) + difference_[u] > 0;
  };
  if (overwritten != kNoNode && is_needed(overwritten)) {
    return fail(Conflict::kOverwritten, k, overwritten);
  }
  if (depends) run.place = find_place(options_, option, is_needed);
  for (const NodeId u : inputs) {
    if (difference_[u] != 0) set_difference(u, 0);
  }
  return true;
}

}  // namespace tidemark::planner::remat
