#include "runtime/delta/heuristics/heuristic.h"
#include "runtime/delta/policies/indexed_policy.h"
#include "runtime/delta/policies/policy.h"

namespace tidemark {
namespace {

// The best by a heuristic among what can be recomputed.
class HeuristicPolicy final : public EvictOnlyPolicy {
 public:
  explicit HeuristicPolicy(HeuristicFn score) : score_(score) {}

  Storage* choose(const Residency& residency) override {
    return index().best(score_, residency.clock(),
                        [&](Storage& storage) { return evictable(residency, storage); });
  }

 private:
  const HeuristicFn score_;
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_lru_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<HeuristicPolicy>(lru_score);
}

std::unique_ptr<ReleasePolicy> make_greedy_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<HeuristicPolicy>(greedy_score);
}

}  // namespace tidemark
