// The duration of a transfer on an idle link, from the device's profile.
#pragma once

#include <cmath>

#include "runtime/core/units.h"

namespace tidemark {

// `bandwidth` in bytes per second; 0: the profile has no such link, and only latency counts.
inline Nanos transfer_time(Bytes bytes, double bandwidth, Nanos latency) {
  if (bandwidth <= 0) return latency;
  return latency + Nanos(std::llround(static_cast<double>(bytes.count()) / bandwidth * 1e9));
}

}  // namespace tidemark
