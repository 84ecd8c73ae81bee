// Evicts the storage that a filter ranks first: the base of the policies named after filters.
#pragma once

#include "runtime/policy/filters/filter.h"
#include "runtime/policy/indexed_policy.h"

namespace tidemark {

// Chooses the best storage by a filter among the evictable ones.
class FilterPolicy final : public EvictOnlyPolicy {
 public:
  explicit FilterPolicy(FilterFn score) : score_(score) {}

  Storage* choose(const MemoryView& view) override {
    return index().best(score_, view.clock(),
                        [&](Storage& storage) { return evictable(view, storage); });
  }

 private:
  const FilterFn score_;
};

}  // namespace tidemark
