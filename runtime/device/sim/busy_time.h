// When one direction of the link is busy: what decides how fast the other one is meanwhile.
//
//   reload     ....|######|........|####|..
//   an offload ......|==|=====|....           slow while the other runs, then fast
//                    slow  fast
//
// Threads: the issuing thread's.
#pragma once

#include <algorithm>
#include <deque>

#include "runtime/core/units.h"

namespace tidemark {

class BusyTime {
 public:
  // Half-open [start, end), in ascending order.
  void add(Nanos start, Nanos end) {
    if (end <= start) return;
    if (!intervals_.empty() && intervals_.back().end >= start) {
      intervals_.back().end = std::max(intervals_.back().end, end);
    } else {
      intervals_.push_back({start, end});
    }
  }
  // Nothing before `now` will be asked for again.
  void forget_before(Nanos now) {
    while (!intervals_.empty() && intervals_.front().end <= now) intervals_.pop_front();
  }

  // When a transfer of `bytes` that begins at `start` ends, at `alone` bytes per second, but
  // `shared` while this direction is busy. Exact for what is known of this direction so far.
  Nanos finish(Nanos start, double bytes, double alone, double shared) const;

 private:
  struct Interval {
    Nanos start;
    Nanos end;
  };
  std::deque<Interval> intervals_;
};

}  // namespace tidemark
