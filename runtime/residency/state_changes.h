// Makes each change of a storage's state, updates dependent state, and notifies listeners.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/intrusive_ptr.h"
#include "runtime/memory/address_map.h"
#include "runtime/residency/context.h"
#include "runtime/tensor/recipe.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class NewBlock;

class StateChanges {
 public:
  explicit StateChanges(ResidencyContext& context) : context_(context) {}
  // Storages that outlive this object become kLost.
  ~StateChanges();
  StateChanges(const StateChanges&) = delete;
  StateChanges& operator=(const StateChanges&) = delete;

  // The storage has lost its last user.
  void last_user_went(Storage& storage);
  // A deferred call needs the storage until release_hold(): it stays obtainable, as if it had a
  // user.
  void hold(Storage& storage);
  void release_hold(Storage& storage);
  // Deletes a storage without references, and everything that only it referred to. Does not
  // recurse along recipes.
  void destroy(Storage& storage);

  // Gives the storage a block. `written`: the work that fills it (none if an operator is about
  // to). `how`: the event sent to listeners.
  void take_block(Storage& storage, NewBlock& block, Event written, StorageEvent::Kind how);
  // Frees the storage's block, in stream order. `next`: kEvicted, kOffloaded or kDead, or the
  // previous state if a call did not run.
  void leave_block(Storage& storage, Residence next);
  // Gives the block of `from`, whose bytes will be overwritten, to `to`. `next`: kDead, or the
  // previous state of a `from` whose call did not run.
  void hand_over(Storage& from, Storage& to, Residence next);
  // Records that work `done` has moved the storage to `block`.
  void move_block(Storage& storage, const Block& block, Event done);
  // An evicted storage is no longer needed.
  void die(Storage& storage);
  // Adds or drops the storage's copy on a tier. Without a block or a copy, the storage is
  // evicted.
  void add_copy(Storage& storage, Tier& tier, Pieces pieces, const Fence& done);
  void drop_copy(Storage& storage);

  // Sets or drops the recipe by which to recompute the storage.
  void set_recipe(Storage& storage, IntrusivePtr<Recipe> recipe);
  void drop_recipe(Storage& storage);

  // Makes a storage visible by address and offers it for release, unless an open plan has it.
  // Call for storages of a plan that has been closed.
  void enter(Storage& storage);
  // Resident storages by address, except those of an open plan.
  const AddressMap<Storage*>& placed() const { return placed_; }
  // A copy of placed(), for loops that may move blocks. Counted as examined.
  std::vector<Storage*> by_address() const;

  // `ahead`: prefetched and not yet used; false: used.
  void set_prefetched(Storage& storage, bool ahead);

  struct Counts {
    int64_t evicted_needed = 0;
    int64_t clean = 0;
    int prefetched = 0;    // and not yet used
    uint64_t changes = 1;  // of the inputs of recomputations
  };
  const Counts& counts() const { return counts_; }

 private:
  void offer_to_policy(Storage& storage);
  void withdraw(Storage& storage);
  void take_from_place(Storage& storage);
  void poison(Storage& storage);
  void settle_evicted(Storage& storage);

  ResidencyContext& context_;
  AddressMap<Storage*> placed_;
  Counts counts_;
  std::vector<Storage*> graveyard_;  // to be deleted
  bool destroying_ = false;
};

inline std::optional<Offset> offset_of(const Storage& storage) {
  if (!storage.resident()) return std::nullopt;
  return storage.managed.block.offset;
}

}  // namespace tidemark
