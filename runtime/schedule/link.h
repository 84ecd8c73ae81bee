// The link to the tiers while a schedule is simulated: each direction carries one copy at a
// time, in the order in which they are booked, and may be slower while the other is busy.
//
// A copy is slowed down by those the other way that were booked before it, and not by later
// ones, so that what has been booked stays as it is.
//
// Threads: one at a time.
#pragma once

#include <algorithm>

#include "runtime/core/busy_time.h"
#include "runtime/schedule/plan_limits.h"

namespace tidemark {

class Link {
 public:
  explicit Link(const PlanLimits& limits = {})
      : latency_(limits.latency),
        out_{limits.out_bandwidth, limits.out_beside_bandwidth},
        in_{limits.in_bandwidth, limits.in_beside_bandwidth} {}

  // Books a copy that may start at `from`. Returns when it is done.
  Nanos out(Bytes size, Nanos from) { return book(out_, in_, size, from); }
  Nanos in(Bytes size, Nanos from) { return book(in_, out_, size, from); }
  // No later copy may start before `now`.
  void forget_before(Nanos now) {
    out_.busy.forget_before(now);
    in_.busy.forget_before(now);
  }

 private:
  struct Way {
    double alone = 0, beside = 0;
    Nanos free{0};
    BusyTime busy{};
  };

  Nanos book(Way& way, Way& other, Bytes size, Nanos from) {
    const Nanos moving = std::max(way.free, from) + latency_;
    const auto bytes = static_cast<double>(size.count());
    way.free = way.beside > 0 ? other.busy.finish(moving, bytes, way.alone, way.beside)
                              : moving + Nanos(static_cast<int64_t>(bytes / way.alone * 1e9));
    if (other.beside > 0) way.busy.add(moving, way.free);
    return way.free;
  }

  Nanos latency_;
  Way out_, in_;
};

}  // namespace tidemark
