// Private to residency/: the view passed to policies.
#pragma once

#include <optional>

#include "runtime/residency/context.h"
#include "runtime/residency/memory_view.h"
#include "runtime/residency/recipe_graph.h"
#include "runtime/residency/state_changes.h"
#include "runtime/residency/transfers.h"

namespace tidemark {

class View final : public MemoryView {
 public:
  View(const ResidencyContext& context, const StateChanges& changes, const RecipeGraph& graph,
       const Transfers& transfers)
      : context_(context), changes_(changes), graph_(graph), transfers_(transfers) {}

  bool may_release(const Storage& storage) const override {
    context_.effort.examine();
    return storage.resident() && !storage.managed.held();
  }
  bool may_evict(Storage& storage) const override { return transfers_.can_evict(storage); }
  bool has_copy(const Storage& storage) const override { return storage.managed.clean(); }
  std::optional<Nanos> recompute_cost(Storage& storage, Nanos enough) const override {
    return graph_.recompute_cost(storage, enough);
  }
  Nanos reload_cost(const Storage& storage) const override {
    return graph_.reload_cost(storage);
  }
  const CostModel& costs() const override { return context_.costs; }
  Nanos clock() const override { return context_.clock; }
  Phase phase() const override { return context_.phase; }
  Bytes capacity() const override { return context_.arena.offsets().capacity(); }
  Bytes used() const override { return context_.arena.offsets().used(); }
  Bytes tier_space() const override {
    return context_.tiers.empty() ? Bytes(0) : context_.tiers.front()->limit();
  }
  int prefetched() const override { return changes_.counts().prefetched; }
  void examine(int64_t count) const override { context_.effort.examine(count); }

 private:
  const ResidencyContext& context_;
  const StateChanges& changes_;
  const RecipeGraph& graph_;
  const Transfers& transfers_;
};

}  // namespace tidemark
