#include "runtime/delta/policies/by_heuristic.h"
#include "runtime/delta/policies/policy.h"

namespace tidemark {

std::unique_ptr<ReleasePolicy> make_lru_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<HeuristicPolicy>(lru_score);
}

}  // namespace tidemark
