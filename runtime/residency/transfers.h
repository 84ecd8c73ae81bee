// Evicts and offloads storages, and copies them back.
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

  // Whether the storage can be recomputed now.
  bool can_evict(const Storage& storage) const;

  // Releases a storage the way the policy's decide() chooses. False if it cannot be released
  // now. REQUIRES: resident, not held.
  bool release(Storage& storage, Reason reason);
  // Releases a storage by `action`; offloading is free if a tier has a copy. False if
  // impossible.
  bool release_by(Storage& storage, Action action, Reason reason);
  // Releases a storage as the last resort does: drops the block if a tier has a copy; else
  // offloads; else evicts, unless claimed; else drops recomputable copies from tiers and
  // offloads.
  void release_as_last_resort(Storage& storage);
  // Copies a storage to a tier without freeing its block, so that a later release is free.
  // False if the storage is not resident, has a copy already or may not be offloaded, or if no
  // tier has space.
  bool copy_out(Storage& storage, Reason reason);

  // Reloads an offloaded storage if the arena has space without releases (at `at`, if given).
  // True if it was reloaded.
  bool prefetch(Storage& storage, std::optional<Offset> at = std::nullopt);
  // Reloads the storage into `block`. REQUIRES: offloaded.
  void reload(Storage& storage, NewBlock block, EventKind kind, Reason reason);

  // Drops an offloaded storage's copy, so that it is recomputed instead. False if impossible.
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
