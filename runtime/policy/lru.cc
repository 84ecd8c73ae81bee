#include "runtime/policy/by_filter.h"
#include "runtime/policy/registry.h"

namespace tidemark {

std::unique_ptr<ReleasePolicy> make_lru_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<FilterPolicy>(lru_score);
}

}  // namespace tidemark
