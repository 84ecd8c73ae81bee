// When bytes of the arena can be reused: by offset, or, for blocks without offsets, by count.
// Private to the simulator.
//
// Threads: belongs to one.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark::simulator {

// By offset: for each byte, the time at which its last user is done.
class FreePlaces {
 public:
  Nanos free_from(Offset at, Bytes size) const {
    Nanos latest{0};
    if (size == Bytes(0)) return latest;
    const int64_t end = (at + size).value();
    for (auto part = first(at.value()); part != parts_.end() && part->first < end; ++part) {
      if (part->second.end > at.value()) latest = std::max(latest, part->second.time);
    }
    return latest;
  }
  // Frees the bytes at `time`. REQUIRES: `time` is not before they were last free.
  void leave(Offset at, Bytes size, Nanos time) {
    if (size == Bytes(0)) return;
    const int64_t begin = at.value(), end = (at + size).value();
    auto part = parts_.lower_bound(begin);
    if (part != parts_.begin()) {
      const auto before = std::prev(part);
      const Part old = before->second;
      if (old.end > begin) {
        before->second.end = begin;
        if (old.end > end) parts_.emplace(end, old);
      }
    }
    for (part = parts_.lower_bound(begin); part != parts_.end() && part->first < end;) {
      const Part old = part->second;
      part = parts_.erase(part);
      if (old.end > end) part = parts_.emplace(end, old).first;
    }
    parts_[begin] = {end, time};
  }

 private:
  struct Part {
    int64_t end = 0;
    Nanos time{0};
  };
  std::map<int64_t, Part>::const_iterator first(int64_t at) const {
    const auto part = parts_.upper_bound(at);
    return part == parts_.begin() ? part : std::prev(part);
  }
  std::map<int64_t, Part> parts_;  // by begin; disjoint
};

// By count: bytes are reused in the order in which they become free.
class FreeCount {
 public:
  explicit FreeCount(Bytes room) : room_(room) {}

  // Takes `size` bytes and returns the time at which they are free. If freed bytes do not
  // suffice, returns the time at which all of them are free.
  Nanos take(Bytes size) {
    Nanos from{0};
    while (live_ + size > room_ && !left_.empty()) {
      const Left earliest = left_.top();
      left_.pop();
      from = std::max(from, earliest.time);
      const Bytes taken = std::min(earliest.size, live_ + size - room_);
      live_ -= taken;
      if (taken < earliest.size) left_.push({earliest.time, earliest.size - taken});
    }
    live_ += size;
    return from;
  }
  void leave(Bytes size, Nanos time) { left_.push({time, size}); }

 private:
  struct Left {
    Nanos time{0};
    Bytes size{0};
    bool operator>(const Left& other) const { return time > other.time; }
  };
  const Bytes room_;
  Bytes live_{0};  // with what is in left_
  std::priority_queue<Left, std::vector<Left>, std::greater<>> left_;
};

}  // namespace tidemark::simulator
