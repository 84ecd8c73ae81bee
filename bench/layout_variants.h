// Variants of a layout problem that fit in every space in which the problem fits: a layout of
// the problem, cut as the variant is, is a layout of the variant. The seed decides all.
//
// A variant has its buffers in another order; its time is reversed, stretched unevenly, both or
// neither. Besides, one of these happens: nothing; a third of the buffers begin later or end
// earlier; a third become smaller; one in twenty is dropped; a sixth are cut in two, in time or
// in size. Sizes stay multiples of what divides all sizes of the problem.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/mix.h"

namespace tidemark::bench {

class LayoutVariant {
 public:
  LayoutVariant(const std::vector<planner::Buffer>& original, uint64_t seed)
      : random_(planner::mix(seed)) {
    for (const planner::Buffer& b : original) unit_ = std::gcd(unit_, b.size.count());
    change_ = static_cast<size_t>(pick(int64_t{kChanges.size()}));
    for (size_t k = 0; k < original.size(); ++k) add_changed(original[k], k);
    if (pick(2) == 0) reverse();
    if (pick(2) == 0) stretch();
    for (size_t k = parts_.size(); k > 1; --k) {
      std::swap(parts_[k - 1], parts_[static_cast<size_t>(pick(static_cast<int64_t>(k)))]);
    }
  }

  std::vector<planner::Buffer> buffers() const {
    std::vector<planner::Buffer> buffers;
    for (const Part& part : parts_) buffers.push_back(part.buffer);
    return buffers;
  }
  // A layout of the variant, from one of the problem that is as high or higher.
  planner::Offsets cut(const planner::Offsets& original) const {
    planner::Offsets offsets;
    for (const Part& part : parts_) offsets.push_back(original[part.of] + part.above);
    return offsets;
  }
  const char* change() const { return kChanges[change_]; }

 private:
  static constexpr std::array kChanges{"none",    "shortened",   "smaller",
                                       "dropped", "cut in time", "cut in size"};
  struct Part {
    planner::Buffer buffer;
    size_t of;       // the problem's buffer
    Bytes above{0};  // from the lower end of that buffer
  };

  // In [0, n).
  int64_t pick(int64_t n) {
    random_ = planner::mix(random_);
    return static_cast<int64_t>(random_ % static_cast<uint64_t>(n));
  }

  void add_changed(planner::Buffer b, size_t of) {
    const int64_t life = b.end - b.begin, units = unit_ == 0 ? 0 : b.size.count() / unit_;
    Part rest{b, of};
    bool has_rest = false;
    switch (change_) {
      case 1:
        if (life < 2 || pick(3) > 0) break;
        (pick(2) == 0 ? b.begin : b.end) = b.begin + 1 + pick(life - 1);
        break;
      case 2:
        if (units > 1 && pick(3) == 0) b.size = Bytes(unit_ * (units - pick(units / 2 + 1)));
        break;
      case 3:
        if (pick(20) == 0) return;
        break;
      case 4:
        has_rest = life > 1 && pick(6) == 0;
        if (has_rest) rest.buffer.begin = b.end = b.begin + 1 + pick(life - 1);
        break;
      case 5:
        has_rest = units > 1 && pick(6) == 0;
        if (!has_rest) break;
        b.size = rest.above = Bytes(unit_ * (1 + pick(units - 1)));
        rest.buffer.size -= b.size;
        break;
      default: break;
    }
    parts_.push_back({b, of});
    if (has_rest) parts_.push_back(rest);
  }

  void reverse() {
    for (Part& part : parts_) {
      part.buffer = {-part.buffer.end, -part.buffer.begin, part.buffer.size};
    }
  }

  // Puts the times at which something begins or ends at uneven distances, in the same order.
  void stretch() {
    std::map<int64_t, int64_t> to;
    for (const Part& part : parts_) to[part.buffer.begin] = to[part.buffer.end] = 0;
    int64_t now = 0;
    for (auto& [from, time] : to) time = now += 1 + pick(pick(4) == 0 ? 1000 : 10);
    for (Part& part : parts_) {
      part.buffer.begin = to[part.buffer.begin];
      part.buffer.end = to[part.buffer.end];
    }
  }

  uint64_t random_;
  int64_t unit_ = 0;  // divides all sizes
  size_t change_ = 0;
  std::vector<Part> parts_;
};

}  // namespace tidemark::bench
