// The link to the host as a cost model prices it, in two figures, for planners that count on
// their own.
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
};

struct LinkRates {
  LinkRate out;
  LinkRate in;
};

LinkRate offload_rate(const CostModel& costs);
LinkRate reload_rate(const CostModel& costs);
inline LinkRates link_rates(const CostModel& costs) {
  return {offload_rate(costs), reload_rate(costs)};
}

}  // namespace tidemark
