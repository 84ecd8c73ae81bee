// When one direction of the link is busy, which determines the speed of the other direction.
//
//   reload     ....|######|........|####|..
//   an offload ......|==|=====|....           slow while the reload runs, then fast
//                    slow  fast
//
// Threads: the issuing thread.
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
  // Forgets intervals before `now`; later calls must not ask about them.
  void forget_before(Nanos now) {
    while (!intervals_.empty() && intervals_.front().end <= now) intervals_.pop_front();
  }

  // The end of a transfer of `bytes` from `start`, at `shared` bytes per second while this
  // direction is busy and `alone` otherwise. Exact for the intervals known so far.
  Nanos finish(Nanos start, double bytes, double alone, double shared) const;

 private:
  struct Interval {
    Nanos start;
    Nanos end;
  };
  std::deque<Interval> intervals_;
};

}  // namespace tidemark
