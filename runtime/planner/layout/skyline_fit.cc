#include "runtime/planner/layout/skyline_fit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner {
namespace {

constexpr int kNobody = -1;
constexpr int kNoBest = std::numeric_limits<int>::max();
constexpr int64_t kJoined = -1;  // the level of a segment that is no more

}  // namespace

SkylineFit::SkylineFit(const std::vector<Buffer>& buffers)
    : buffers_(buffers), times_(section_times(buffers)), leaf_of_(buffers.size()) {
  std::vector<int> items;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!is_empty(buffers[i])) items.push_back(static_cast<int>(i));
  }
  while (leaves_ < items.size()) leaves_ *= 2;
  nodes_.assign(2 * leaves_, {kNoBest, kNobody, kNoBest, kNobody, kNoBest});
  buffer_at_.assign(leaves_, kNobody);
  build(1, 0, items.size(), false, items);
  segments_.resize(static_cast<size_t>(times_.count) + 1);
}

void SkylineFit::build(size_t node, size_t from, size_t to, bool by_end,
                       std::vector<int>& items) {
  if (from == to) return;
  if (node >= leaves_) {
    const int i = items[from];
    nodes_[node] = {times_.first[i], times_.first[i], times_.last[i], times_.last[i], kNoBest};
    buffer_at_[node - leaves_] = i;
    leaf_of_[i] = node;
    return;
  }
  const size_t middle = from + (to - from + 1) / 2;
  const std::vector<int>& key = by_end ? times_.last : times_.first;
  const auto at = [&](size_t k) { return items.begin() + static_cast<std::ptrdiff_t>(k); };
  std::nth_element(at(from), at(middle), at(to),
                   [&](int a, int b) { return std::pair(key[a], a) < std::pair(key[b], b); });
  build(2 * node, from, middle, !by_end, items);
  build(2 * node + 1, middle, to, !by_end, items);
  const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  nodes_[node] = {
      std::min(left.begin_from, right.begin_from), std::max(left.begin_to, right.begin_to),
      std::min(left.end_from, right.end_from), std::max(left.end_to, right.end_to), kNoBest};
}

void SkylineFit::wait(const std::vector<int>& order) {
  for (size_t k = 0; k < order.size(); ++k) {
    nodes_[leaf_of_[order[k]]].best = static_cast<int>(k);
  }
  for (size_t node = leaves_ - 1; node > 0; --node) {
    nodes_[node].best = std::min(nodes_[2 * node].best, nodes_[2 * node + 1].best);
  }
}

void SkylineFit::leave(int buffer) {
  size_t node = leaf_of_[buffer];
  nodes_[node].best = kNoBest;
  for (node /= 2; node > 0; node /= 2) {
    const int best = std::min(nodes_[2 * node].best, nodes_[2 * node + 1].best);
    if (nodes_[node].best == best) break;
    nodes_[node].best = best;
  }
}

// Lowers `best` to the first in the order that lies in [begin, end).
void SkylineFit::find(size_t node, int begin, int end, int& best) const {
  const Node& at = nodes_[node];
  if (at.best >= best || at.begin_to < begin || at.end_from > end) return;
  if (at.begin_from >= begin && at.end_to <= end) {
    best = at.best;
    return;
  }
  if (node >= leaves_) return;
  const bool swap = nodes_[2 * node + 1].best < nodes_[2 * node].best;
  find(2 * node + (swap ? 1 : 0), begin, end, best);
  find(2 * node + (swap ? 0 : 1), begin, end, best);
}

void SkylineFit::add_level(int segment) {
  by_level_.emplace_back(segments_[segment].level, segment);
  std::push_heap(by_level_.begin(), by_level_.end(), std::greater<>());
}

void SkylineFit::join_next(int segment) {
  Segment& s = segments_[segment];
  Segment& next = segments_[s.after];
  s.end = next.end;
  s.after = next.after;
  if (s.after != kNobody) segments_[s.after].before = segment;
  next.level = kJoined;
}

// Its lower neighbour takes it over; the earlier one if both are at one level.
void SkylineFit::raise(int lowest) {
  Segment& s = segments_[lowest];
  const int before = s.before;
  const bool leftwards =
      before != kNobody &&
      (s.after == kNobody || segments_[before].level <= segments_[s.after].level);
  if (!leftwards) {
    s.level = segments_[s.after].level;
    join_next(lowest);
    add_level(lowest);
    return;
  }
  join_next(before);
  const int after = segments_[before].after;
  if (after != kNobody && segments_[after].level == segments_[before].level) join_next(before);
}

void SkylineFit::split(int lowest, int buffer) {
  const Segment whole = segments_[lowest];
  const int first = times_.first[buffer], last = times_.last[buffer];
  segments_[lowest].level = kJoined;
  int before = whole.before;
  const auto append = [&](int begin, int end, int64_t level) {
    if (begin == end) return;
    segments_[begin] = {end, before, kNobody, level};
    if (before != kNobody) segments_[before].after = begin;
    before = begin;
    add_level(begin);
  };
  append(lowest, first, whole.level);
  append(first, last, whole.level + buffers_[buffer].size.count());
  append(last, whole.end, whole.level);
  segments_[before].after = whole.after;
  if (whole.after != kNobody) segments_[whole.after].before = before;
}

Offsets SkylineFit::place(const std::vector<int>& order) {
  Offsets offsets(buffers_.size());
  wait(order);
  segments_[0] = {times_.count, kNobody, kNobody, 0};
  by_level_.assign(1, {0, 0});
  for (size_t waiting = order.size(); waiting > 0;) {
    const auto [level, lowest] = by_level_.front();
    std::pop_heap(by_level_.begin(), by_level_.end(), std::greater<>());
    by_level_.pop_back();
    if (segments_[lowest].level != level) continue;  // out of date
    int best = kNoBest;
    find(1, lowest, segments_[lowest].end, best);
    if (best == kNoBest) {
      raise(lowest);
      continue;
    }
    const int buffer = order[best];
    offsets[buffer] = Offset(level);
    leave(buffer);
    --waiting;
    split(lowest, buffer);
  }
  return offsets;
}

std::vector<int> longest_first(const std::vector<Buffer>& buffers) {
  std::vector<int> order;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!is_empty(buffers[i])) order.push_back(static_cast<int>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const int64_t x = buffers[a].end - buffers[a].begin;
    const int64_t y = buffers[b].end - buffers[b].begin;
    return x != y ? x > y : buffers[a].size > buffers[b].size;
  });
  return order;
}

Offsets lowest_longest(const std::vector<Buffer>& buffers) {
  return SkylineFit(buffers).place(longest_first(buffers));
}

}  // namespace tidemark::planner
