// DELTA's machinery; that nothing is recomputed is the session's doing (PolicyInfo::evicts).
#include "runtime/policy/registry.h"

namespace tidemark {

MakePolicy make_delta_policy;

std::unique_ptr<ReleasePolicy> make_offload_only_policy(const PolicySettings& settings) {
  return make_delta_policy(settings);
}

}  // namespace tidemark
