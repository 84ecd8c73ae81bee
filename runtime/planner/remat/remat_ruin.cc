#include "runtime/planner/remat/remat_ruin.h"

#include <algorithm>

namespace tidemark::planner::remat {
namespace {

// Shares of the kinds of edits; the rest drops a value.
constexpr double kStretch = 0.05, kKeep = 0.1, kRelocate = 0.13, kSwitch = 0.13, kRemove = 0.25,
                 kShift = 0.2;
constexpr size_t kFew = 8, kMany = 60;  // recomputations removed at once, at most
constexpr size_t kKept = 4;             // values kept at once, at most
constexpr size_t kShifted = 3;          // runs moved at once, at most
constexpr int32_t kReach = 60;          // positions that a run moves by, at most

}  // namespace

Ruin::Ruin(const Options& options, Moves& moves, Random& random)
    : options_(options), moves_(moves), random_(random) {
  for (NodeId i = 0; i < options.problem().size(); ++i) {
    has_options_ |= options.of_node(i).size() > 1;
  }
}

bool Ruin::apply(Sequence& sequence) {
  double kind = random_.unit() * (has_options_ ? 1 : 1 - kSwitch);
  if ((kind -= kStretch) < 0) return remove_stretch(sequence, 1 + random_.below(kMany));
  if ((kind -= kKeep) < 0) return keep_values(sequence);
  if ((kind -= kRelocate) < 0) return moves_.relocate(sequence, any_run(sequence));
  if (has_options_ && (kind -= kSwitch) < 0) {
    return moves_.switch_option(sequence, any_run(sequence));
  }
  if ((kind -= kRemove) < 0) return remove_some(sequence);
  if ((kind -= kShift) < 0) return shift_some(sequence);
  return drop_value(sequence);
}

int32_t Ruin::any_run(const Sequence& sequence) {
  return static_cast<int32_t>(random_.below(sequence.size()));
}

void Ruin::find_repeats(const Sequence& sequence) {
  repeats_.clear();
  marked_.assign(options_.problem().nodes.size(), 0);
  for (int32_t k = 0; k < static_cast<int32_t>(sequence.size()); ++k) {
    uint8_t& ran = marked_[options_.node(sequence[k])];
    if (ran != 0 && !moves_.is_rider(sequence, k)) repeats_.push_back(k);
    ran = 1;
  }
}

// Removes a few recomputations, neighbours or scattered.
bool Ruin::remove_some(Sequence& sequence) {
  if (random_.chance(0.5)) return remove_stretch(sequence, kFew);
  find_repeats(sequence);
  if (repeats_.empty()) return false;
  const size_t count = std::min(repeats_.size(), 1 + random_.below(kFew));
  for (size_t k = 0; k < count; ++k) {
    std::swap(repeats_[k], repeats_[k + random_.below(repeats_.size() - k)]);
  }
  std::sort(repeats_.begin(), repeats_.begin() + static_cast<int64_t>(count));
  for (size_t k = count; k-- > 0;) moves_.remove(sequence, repeats_[k]);
  moves_.attach_left_riders(sequence);
  return true;
}

// Removes up to `most` recomputations that are neighbours.
bool Ruin::remove_stretch(Sequence& sequence, size_t most) {
  find_repeats(sequence);
  if (repeats_.empty()) return false;
  const size_t count = std::min(repeats_.size(), 1 + random_.below(most));
  const size_t from = random_.below(repeats_.size() - count + 1);
  for (size_t k = from + count; k-- > from;) moves_.remove(sequence, repeats_[k]);
  moves_.attach_left_riders(sequence);
  return true;
}

// Removes all recomputations of some neighbours: checkpoints, from now on.
bool Ruin::keep_values(Sequence& sequence) {
  find_repeats(sequence);
  if (repeats_.empty()) return false;
  const size_t from = random_.below(repeats_.size());
  const size_t to = std::min(repeats_.size(), from + 1 + random_.below(kKept));
  std::fill(marked_.begin(), marked_.end(), uint8_t{0});
  for (size_t k = from; k < to; ++k) marked_[options_.node(sequence[repeats_[k]])] = 1;
  for (size_t k = repeats_.size(); k-- > 0;) {
    if (marked_[options_.node(sequence[repeats_[k]])]) moves_.remove(sequence, repeats_[k]);
  }
  moves_.attach_left_riders(sequence);
  return true;
}

bool Ruin::shift_some(Sequence& sequence) {
  for (size_t count = 1 + random_.below(kShifted); count > 0; --count) {
    moves_.shift(sequence, any_run(sequence), kReach);
  }
  return true;
}

// Computes a live value again before its next use.
bool Ruin::drop_value(Sequence& sequence) {
  moves_.look_at(sequence, any_run(sequence));
  if (moves_.live().empty()) return false;
  const NodeId value = moves_.live()[random_.below(moves_.live().size())];
  return moves_.compute_before(sequence, moves_.next_use(value), value);
}

}  // namespace tidemark::planner::remat
