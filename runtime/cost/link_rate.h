// A cost model's link to the host as two numbers, for planners with their own cost computation.
//
// Threads: the cost model's.
#pragma once

#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"

namespace tidemark {

// A copy takes `latency` + bytes / `bytes_per_second`.
struct LinkRate {
  Nanos latency{0};
  double bytes_per_second = 1e12;
  Nanos time(Bytes bytes) const {
    const double seconds = static_cast<double>(bytes.count()) / bytes_per_second;
    return latency + Nanos(static_cast<int64_t>(seconds * 1e9));
  }
};

struct LinkRates {
  LinkRate out;
  LinkRate in;
};

LinkRates link_rates(const CostModel& costs);

}  // namespace tidemark
