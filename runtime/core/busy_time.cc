#include "runtime/core/busy_time.h"

#include <cmath>

namespace tidemark {

Nanos BusyTime::finish(Nanos start, double bytes, double alone, double shared) const {
  double at = static_cast<double>(start.count());
  const auto first = std::lower_bound(
      intervals_.begin(), intervals_.end(), start,
      [](const Interval& interval, Nanos time) { return interval.end <= time; });
  for (auto interval = first; interval != intervals_.end(); ++interval) {
    const auto begin = static_cast<double>(interval->start.count());
    const auto end = static_cast<double>(interval->end.count());
    if (begin > at) {
      const double moved = (begin - at) * 1e-9 * alone;
      if (moved >= bytes) break;
      bytes -= moved;
      at = begin;
    }
    const double moved = (end - at) * 1e-9 * shared;
    if (moved >= bytes) return Nanos(std::llround(at + bytes / shared * 1e9));
    bytes -= moved;
    at = end;
  }
  return Nanos(std::llround(at + bytes / alone * 1e9));
}

}  // namespace tidemark
