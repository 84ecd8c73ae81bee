#include "runtime/policy/by_filter.h"
#include "runtime/policy/registry.h"

namespace tidemark {

std::unique_ptr<ReleasePolicy> make_greedy_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<FilterPolicy>(greedy_score);
}

}  // namespace tidemark
