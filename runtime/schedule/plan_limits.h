// The memory that a schedule may use, and the cost of copies.
//
// Threads: values, no state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/core/units.h"

namespace tidemark {

struct PlanLimits {
  Bytes space{0};       // in the arena, for all resident storages
  Bytes tier_space{0};  // on the tier for copies; 0: nothing is offloaded
  // The link to the tiers. Each copy takes `latency` + bytes / bandwidth (bytes per second).
  double out_bandwidth = 1;
  double in_bandwidth = 1;
  // The bandwidths while the other direction is busy; 0: no different.
  double out_beside_bandwidth = 0;
  double in_beside_bandwidth = 0;
  Nanos latency{0};
  // Moves within the device: bytes per second, and the least time of one.
  double move_bandwidth = std::numeric_limits<double>::infinity();
  Nanos least_move{0};

  // The times of a copy while the other direction is idle.
  Nanos out_time(Bytes size) const { return latency + time(size, out_bandwidth); }
  Nanos in_time(Bytes size) const { return latency + time(size, in_bandwidth); }
  Nanos move_time(Bytes size) const { return std::max(least_move, time(size, move_bandwidth)); }
  // Bytes moved in `time`, at most 2^48, so that thousands can be summed. REQUIRES: a finite
  // bandwidth.
  Bytes moved_in(Nanos time) const {
    constexpr double kMost = 0x1p48;
    return Bytes(static_cast<int64_t>(
        std::min(kMost, static_cast<double>(time.count()) * 1e-9 * move_bandwidth)));
  }

 private:
  static Nanos time(Bytes size, double bandwidth) {
    return Nanos(static_cast<int64_t>(static_cast<double>(size.count()) / bandwidth * 1e9));
  }
};

}  // namespace tidemark
