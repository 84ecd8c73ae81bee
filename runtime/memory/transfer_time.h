// How long a transfer takes on an idle link, by the device's profile.
#pragma once

#include <cmath>

#include "runtime/core/units.h"

namespace tidemark {

// `bandwidth` in bytes per second; 0, a link that the profile does not have, costs latency
// alone.
inline Nanos transfer_time(Bytes bytes, double bandwidth, Nanos latency) {
  if (bandwidth <= 0) return latency;
  return latency + Nanos(std::llround(static_cast<double>(bytes.count()) / bandwidth * 1e9));
}

}  // namespace tidemark
