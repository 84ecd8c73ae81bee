// Evicts what a filter says: what the policies of the filters' names are made of.
#pragma once

#include "runtime/policy/filters/filter.h"
#include "runtime/policy/indexed_policy.h"

namespace tidemark {

// The best by a filter among what can be recomputed.
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
