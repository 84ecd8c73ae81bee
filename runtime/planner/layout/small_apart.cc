#include "runtime/planner/layout/small_apart.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner {

SmallApart::SmallApart(const MovingProblem& problem)
    : rest_(problem),
      at_(problem.buffers.size()),
      ceiling_(Offset() + align_down(problem.capacity)) {
  take_lowest();
  take_highest();
  rest_.capacity = ceiling_ - floor_;
  for (auto& at : rest_.preferred_offsets) {
    if (at) at = std::max(Offset(), *at - (floor_ - Offset()));
  }
}

bool SmallApart::fits() const {
  const bool any = std::any_of(at_.begin(), at_.end(), [](const auto& at) { return !!at; });
  return any && max_load(rest_.buffers) <= rest_.capacity;
}

MovingLayout SmallApart::join(MovingLayout layout) const {
  const Bytes shift = floor_ - Offset();
  for (Move& move : layout.moves) move.to = move.to + shift;
  for (size_t i = 0; i < at_.size(); ++i) {
    if (at_[i]) {
      layout.offsets[i] = *at_[i];
    } else if (!is_empty(rest_.buffers[i])) {
      layout.offsets[i] = layout.offsets[i] + shift;
    }
  }
  return layout;
}

// REQUIRES: rest_ still has the whole capacity.
bool SmallApart::small(size_t i) const {
  return !is_empty(rest_.buffers[i]) && is_small(rest_.buffers[i].size, rest_.capacity);
}

void SmallApart::take_lowest() {
  Offset first_large = ceiling_;
  std::vector<size_t> by_begin;
  for (size_t i = 0; i < at_.size(); ++i) {
    if (!rest_.preferred_offsets[i] || is_empty(rest_.buffers[i])) continue;
    by_begin.push_back(i);
    if (!small(i)) first_large = std::min(first_large, *rest_.preferred_offsets[i]);
  }
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](size_t a, size_t b) {
    return rest_.buffers[a].begin < rest_.buffers[b].begin;
  });
  std::map<Offset, Buffer> last;  // the one that lies there
  for (const size_t i : by_begin) {
    const Offset at = *rest_.preferred_offsets[i];
    if (at >= first_large) continue;
    const Buffer buffer = rest_.buffers[i];
    const auto [before, is_first] = last.try_emplace(at, buffer);
    if (!is_first && (before->second.end > buffer.begin || before->second.size < buffer.size)) {
      // A storage that comes back while its old block is still being copied.
      rest_.preferred_offsets[i].reset();
      continue;
    }
    before->second.end = buffer.end;
    floor_ = std::max(floor_, at + buffer.size);
    take(i, at);
  }
}

void SmallApart::take_highest() {
  std::vector<Buffer> alone = rest_.buffers;
  for (size_t i = 0; i < at_.size(); ++i) {
    if (!small(i) || rest_.preferred_offsets[i]) alone[i].size = Bytes(0);
  }
  const Offsets places = lowest_longest(alone);
  ceiling_ = ceiling_ - height(alone, places);
  for (size_t i = 0; i < at_.size(); ++i) {
    if (!is_empty(alone[i])) take(i, ceiling_ + (places[i] - Offset()));
  }
}

void SmallApart::take(size_t i, Offset at) {
  at_[i] = at;
  rest_.buffers[i].size = Bytes(0);
}

}  // namespace tidemark::planner
