// DELTA's policy as it is: the session prevents recomputation (PolicyInfo::evicts).
#include "runtime/policy/delta_policy.h"
#include "runtime/policy/registry.h"

namespace tidemark {

std::unique_ptr<ReleasePolicy> make_offload_only_policy(const PolicySettings& settings) {
  return std::make_unique<DeltaPolicy>(settings.delta, settings.known_to_fit);
}

}  // namespace tidemark
