// Makes space for a buffer that no hole holds.
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "runtime/planner/layout/moving_pass.h"

namespace tidemark::planner {
namespace {

// After this many windows, a run of blocks is merely compacted.
constexpr int kWindows = 2000;

// A window that cannot be cleared is tried again at a price higher by this share (1/n).
constexpr int64_t kGrowth = 32;

// Where small blocks lie close together, windows begin this share (1/n) of the needed size
// apart.
constexpr int64_t kGrain = 32;

// Blocks below this share (1/n) of the needed size are placed after the others.
constexpr int64_t kSmallBlock = 16;

// Free ranges, handed out to one block after the other.
class Rooms {
 public:
  using Room = MovingPass::Hole;

  void add(const Room& room) { rooms_.push_back(room); }
  // Returns false if the place is not free.
  bool take(Offset place, Bytes size) {
    for (Room& room : rooms_) {
      if (place < room.begin || place + size > room.end) continue;
      const Room above{place + size, room.end};
      room.end = place;
      add(above);
      return true;
    }
    return false;
  }
  // Takes the lower end of the range that fits best.
  std::optional<Offset> take_best(Bytes size) {
    Room* best = nullptr;
    for (Room& room : rooms_) {
      if (room.size() >= size && (!best || room.size() < best->size())) best = &room;
    }
    if (!best) return std::nullopt;
    const Offset place = best->begin;
    best->begin = place + size;
    return place;
  }

 private:
  std::vector<Room> rooms_;
};

}  // namespace

struct MovingPass::Blocks {
  Blocks(const MovingPass& of, int64_t time) : pass(of), live(of.state_.live) {
    prices.reserve(live.size() + 1);
    fixed.reserve(live.size() + 1);
    for (const size_t i : live) {
      const std::optional<Bytes> price = pass.price(i, time);
      prices.push_back(prices.back() + price.value_or(Bytes(0)));
      fixed.push_back(fixed.back() + (price ? 0 : 1));
    }
  }
  size_t size() const { return live.size(); }
  Bytes size(size_t k) const { return pass.buffer(live[k]).size; }
  Bytes price(size_t first, size_t last) const { return prices[last + 1] - prices[first]; }
  bool movable(size_t first, size_t last) const { return fixed[last + 1] == fixed[first]; }
  // Without live[first] to live[last], the hole would lie between lower() and upper().
  Offset lower(size_t first) const {
    return first == 0 ? Offset() : pass.end_of(live[first - 1]);
  }
  Offset upper(size_t last) const {
    return last + 1 == live.size() ? pass.top_ : pass.state_.at[live[last + 1]];
  }
  bool touches_the_one_before(size_t k) const {
    return k > 0 && movable(k - 1, k) && lower(k) == pass.state_.at[live[k]];
  }

  const MovingPass& pass;
  const std::vector<size_t>& live;
  // Prefix sums over the first k blocks: the cost of moving them, and how many must not move.
  std::vector<Bytes> prices{Bytes(0)};
  std::vector<size_t> fixed{0};
};

bool MovingPass::Window::operator>(const Window& other) const {
  return std::tie(price, first, last) > std::tie(other.price, other.first, other.last);
}

// Makes a hole that holds the buffer. Returns false, and has moved nothing, if it found none.
bool MovingPass::clear(size_t i, int64_t time) {
  const Bytes size = buffer(i).size;
  Bytes unused{0}, widest{0};
  for (const Hole& hole : state_.holes) {
    unused += hole.size();
    widest = std::max(widest, hole.size());
  }
  if (unused < size) return false;
  const Blocks blocks(*this, time);
  std::priority_queue<Window, std::vector<Window>, std::greater<>> windows;
  const auto consider = [&](size_t first, size_t last, Bytes largest, Bytes least) {
    // Skips windows whose largest block fits neither inside nor outside.
    for (; last < blocks.size() && blocks.movable(first, last); ++last) {
      largest = std::max(largest, blocks.size(last));
      const Bytes within = blocks.upper(last) - blocks.lower(first) - size;
      if (blocks.price(first, last) < least || largest > std::max(widest, within)) continue;
      windows.push({blocks.price(first, last), first, last, largest});
      return;
    }
  };
  Bytes skipped{0};
  for (size_t first = 0, last = 0; first < blocks.size(); ++first) {
    if (blocks.touches_the_one_before(first)) {
      skipped += blocks.size(first - 1);
      if (skipped * kGrain < size) continue;
    }
    skipped = Bytes(0);
    last = std::max(last, first);
    while (last < blocks.size() && blocks.upper(last) - blocks.lower(first) < size) ++last;
    Bytes largest{0};
    for (size_t k = first; k < last; ++k) largest = std::max(largest, blocks.size(k));
    consider(first, last, largest, Bytes(0));
  }
  for (int looked = 0; !windows.empty() && looked < kWindows; ++looked) {
    const Window window = windows.top();
    windows.pop();
    const Hole range{blocks.lower(window.first), blocks.upper(window.last)};
    if (clear_range(i, time, range, window.first, window.last)) return true;
    consider(window.first, window.last + 1, window.largest,
             Bytes(window.price.count() / kGrowth * (kGrowth + 1)));
  }
  return compact(i, time, blocks);
}

// Slides down the cheapest run of blocks that leaves a hole.
bool MovingPass::compact(size_t i, int64_t time, const Blocks& blocks) {
  std::optional<Window> best;
  Bytes staying{0};
  for (size_t first = 0, last = 0; last < blocks.size(); ++last) {
    staying += blocks.size(last);
    if (!blocks.movable(last, last)) {
      first = last + 1;
      staying = Bytes(0);
      continue;
    }
    for (; first <= last; ++first) {
      if (blocks.upper(last) - blocks.lower(first) - staying < buffer(i).size) break;
      const Window window{blocks.price(first, last), first, last, Bytes(0)};
      if (!best || *best > window) best = window;
      staying -= blocks.size(first);
    }
  }
  if (!best) return false;
  Offset to = blocks.lower(best->first);
  const auto begin = state_.live.begin();
  for (const size_t j : std::vector<size_t>(begin + static_cast<ptrdiff_t>(best->first),
                                            begin + static_cast<ptrdiff_t>(best->last) + 1)) {
    move(j, time, to);
    to = end_of(j);
  }
  return true;
}

// Clears that very place, if this moves less than `bound` and less than the buffer itself.
bool MovingPass::clear_at(size_t i, int64_t time, Offset place, Bytes bound) {
  const Hole range{place, place + buffer(i).size};
  if (range.end > top_) return false;
  auto first = from(place);
  if (first != state_.live.begin() && end_of(*std::prev(first)) > place) --first;
  Bytes sum{0};
  auto after = first;
  for (; after != state_.live.end() && state_.at[*after] < range.end; ++after) {
    const std::optional<Bytes> once = price(*after, time);
    if (!once) return false;
    sum += *once;
  }
  if (sum > std::min(bound, buffer(i).size)) return false;
  const auto index = [&](auto it) { return static_cast<size_t>(it - state_.live.cbegin()); };
  return clear_range(i, time, range, index(first), index(after) - 1);
}

// Moves the blocks in the range to their preferred offsets, or to where they fit best, large
// ones first: into holes outside or, as far as there is space, to the range's lower end.
// Returns false, and has moved nothing, if they do not fit.
bool MovingPass::clear_range(size_t i, int64_t time, const Hole& range, size_t first,
                             size_t last) {
  Rooms rooms;
  rooms.add({range.begin, range.end - buffer(i).size});
  for (const Hole& hole : state_.holes) {
    if (hole.begin < range.begin) rooms.add({hole.begin, std::min(hole.end, range.begin)});
    if (hole.end > range.end) rooms.add({std::max(hole.begin, range.end), hole.end});
  }
  const auto live = state_.live.begin();
  std::vector<size_t> blocks(live + static_cast<ptrdiff_t>(first),
                             live + static_cast<ptrdiff_t>(last) + 1);
  const auto larger = [&](size_t a, size_t b) {
    return std::pair(buffer(b).size, b) < std::pair(buffer(a).size, a);
  };
  const auto small = std::partition(blocks.begin(), blocks.end(), [&](size_t b) {
    return buffer(b).size * kSmallBlock >= buffer(i).size;
  });
  std::sort(blocks.begin(), small, larger);
  std::vector<std::pair<size_t, Offset>> outward;
  std::vector<size_t> within;
  for (auto b = blocks.begin(); b != blocks.end(); ++b) {
    if (b == small) std::sort(b, blocks.end(), larger);
    const Bytes size = buffer(*b).size;
    const auto inside = [&](Offset place) {
      return place < range.end && place + size > range.begin;
    };
    if (ends_at_preferred(*b)) {
      const Offset home = *problem_.preferred_offsets[*b];
      if (!inside(home) && rooms.take(home, size)) {
        outward.emplace_back(*b, home);
        continue;
      }
    }
    const std::optional<Offset> place = rooms.take_best(size);
    if (!place) return false;
    if (inside(*place)) {
      within.push_back(*b);
    } else {
      outward.emplace_back(*b, *place);
    }
  }
  for (const auto& [block, to] : outward) move(block, time, to);
  std::sort(within.begin(), within.end(),
            [&](size_t a, size_t b) { return state_.at[a] < state_.at[b]; });
  Offset to = range.begin;
  for (const size_t block : within) {
    move(block, time, to);
    to = end_of(block);
  }
  return true;
}

}  // namespace tidemark::planner
