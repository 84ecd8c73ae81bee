// What a device's profile says of copies and moves, for planners of steps that no session ran:
// programs that read a step from a file. A session's costs may be measured (cost_model.h).
//
// Threads: a function without state.
#pragma once

#include "runtime/device/profile.h"
#include "runtime/schedule/plan_limits.h"

namespace tidemark {

// Without space: the caller sets `space` and `tier_space`.
inline PlanLimits limits_of(const DeviceProfile& profile) {
  return {.out_bandwidth = profile.offload_bandwidth,
          .in_bandwidth = profile.reload_bandwidth,
          .out_beside_bandwidth = profile.duplex_offload_bandwidth,
          .in_beside_bandwidth = profile.duplex_reload_bandwidth,
          .latency = profile.transfer_latency,
          .move_bandwidth = profile.memory_bandwidth * profile.memory_efficiency / 2,
          .least_move = profile.kernel_floor};
}

}  // namespace tidemark
