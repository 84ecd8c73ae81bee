// The duration of a transfer on an idle link, from the device's profile.
#pragma once

#include <cmath>

#include "runtime/core/units.h"
#include "runtime/device/profile.h"

namespace tidemark {

// `link`: the profile's bandwidth in that direction. 0: the profile has no such link, and only
// latency counts.
inline Nanos transfer_time(const DeviceProfile& profile, double DeviceProfile::*link,
                           Bytes bytes) {
  const double bandwidth = profile.*link;
  const Nanos latency = profile.transfer_latency;
  if (bandwidth <= 0) return latency;
  return latency + Nanos(std::llround(static_cast<double>(bytes.count()) / bandwidth * 1e9));
}

}  // namespace tidemark
