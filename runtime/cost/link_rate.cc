#include "runtime/cost/link_rate.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr Bytes kProbe{64 << 20};

LinkRate rate_of(Nanos nothing, Nanos probe) {
  return {nothing,
          static_cast<double>(kProbe.count()) / std::max(1e-9, to_seconds(probe - nothing))};
}

}  // namespace

LinkRates link_rates(const CostModel& costs) {
  return {rate_of(costs.offload_time(Bytes(0)), costs.offload_time(kProbe)),
          rate_of(costs.reload_time(Bytes(0)), costs.reload_time(kProbe))};
}

}  // namespace tidemark
