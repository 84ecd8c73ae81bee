#include <array>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/delta/policies/policy.h"

namespace tidemark {

std::span<const PolicyInfo> policies() {
  static constexpr std::array kAll{
      PolicyInfo{"tide",
                 "ours: the last step as forecast, copies the link hides, cheap evictions",
                 true, make_tide_policy},
      PolicyInfo{"delta", "DELTA: evict or offload, whichever is cheaper", true,
                 make_delta_policy},
      PolicyInfo{"dtr", "DTR: evict what costs least to recompute per byte and staleness", true,
                 make_dtr_policy},
      PolicyInfo{"lru", "evict the least recently used", true, make_lru_policy},
      PolicyInfo{"greedy", "evict the largest", true, make_greedy_policy},
      PolicyInfo{"msps", "Capuchin: offload what the link can hide, else evict by MSPS", true,
                 make_msps_policy},
      PolicyInfo{"offload-only", "DELTA that never recomputes", false,
                 make_offload_only_policy},
      PolicyInfo{"checkpoint", "Chen: keep the borders of sqrt(n) segments", true,
                 make_checkpoint_policy},
      PolicyInfo{"random", "evict or offload by lot", true, make_random_policy},
  };
  return kAll;
}

const PolicyInfo& find_policy(std::string_view name) {
  std::string names = "none";
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == name) return policy;
    names += ", " + std::string(policy.name);
  }
  throw UsageError("there is no policy '" + std::string(name) + "'; there are: " + names);
}

}  // namespace tidemark
