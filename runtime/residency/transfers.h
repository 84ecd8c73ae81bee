// Sending storages away, and bringing copies back.
//
// Threads: the session's issuing thread.
#pragma once

#include <optional>

#include "runtime/residency/context.h"
#include "runtime/residency/measurements.h"
#include "runtime/residency/recipe_graph.h"
#include "runtime/residency/state_changes.h"

namespace tidemark {

class NewBlock;

class Transfers {
 public:
  Transfers(ResidencyContext& context, StateChanges& changes, const RecipeGraph& graph,
            Measurements& measurements)
      : context_(context), changes_(changes), graph_(graph), measurements_(measurements) {}

  // Can it be recomputed, now?
  bool can_evict(const Storage& storage) const;

  // Releases one storage the way the director wants. False if it cannot be released at all now.
  // REQUIRES: resident, not held.
  bool release(Storage& storage, Reason reason);
  // Releases one that way; offloading is free where a copy is on a tier. False if that cannot
  // be done.
  bool release_by(Storage& storage, Action action, Reason reason);
  // The austere schedule's way: for nothing, copied out, evicted, or copied out once copies of
  // what can be computed have made way. What is claimed is not evicted.
  void release_austerely(Storage& storage);
  // Copies one out that stays where it is: releasing it later is free. False if no tier has
  // room, or it has a copy already, or may not be offloaded.
  bool copy_out(Storage& storage, Reason reason);

  // Brings an offloaded storage back if the arena has room as it is (at `at`, if given); true
  // if it did.
  bool prefetch(Storage& storage, std::optional<Offset> at = std::nullopt);
  // Brings it back into that block. REQUIRES: offloaded.
  void reload(Storage& storage, NewBlock block, EventKind kind, Reason reason);

  // Of one that is on a tier: it is to be recomputed instead. False if it cannot be.
  bool drop_copy(Storage& storage, Reason reason);

 private:
  void evict(Storage& storage, Reason reason);
  bool offload(Storage& storage, Reason reason);
  bool store(Storage& storage, EventKind kind, Reason reason);
  void drop_clean(Storage& storage, Reason reason);
  std::optional<TierSpace> reserve_on_tier(Bytes size, Tier*& tier);
  void drop_copies_for(Bytes size);

  ResidencyContext& context_;
  StateChanges& changes_;
  const RecipeGraph& graph_;
  Measurements& measurements_;
};

}  // namespace tidemark
