#include "runtime/delta/delta_policy.h"

#include "runtime/delta/policies/policy.h"

namespace tidemark {

std::unique_ptr<ReleasePolicy> make_delta_policy(const PolicySettings& settings) {
  return std::make_unique<DeltaPolicy>(settings.delta, settings.known_to_fit);
}

}  // namespace tidemark
