// Evicts what a filter says: what the policies of the filters' names are made of.
#pragma once

#include "runtime/delta/heuristics/heuristic.h"
#include "runtime/delta/policies/indexed_policy.h"

namespace tidemark {

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

}  // namespace tidemark
