#include "runtime/policy/delta_policy.h"
#include "runtime/policy/registry.h"

namespace tidemark {

std::unique_ptr<ReleasePolicy> make_delta_policy(const PolicySettings& settings) {
  return std::make_unique<DeltaPolicy>(settings.delta, settings.known_to_fit);
}

std::unique_ptr<ReleasePolicy> make_delta_paper_policy(const PolicySettings& settings) {
  return std::make_unique<DeltaPolicy>(settings.delta, settings.known_to_fit,
                                       delta_as_printed());
}

}  // namespace tidemark
