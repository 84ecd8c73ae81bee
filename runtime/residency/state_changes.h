// Each change of a storage's state: what depends on it is brought up to date here, and whoever
// listens is told of it.
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
  // Storages that outlive it become kLost.
  ~StateChanges();
  StateChanges(const StateChanges&) = delete;
  StateChanges& operator=(const StateChanges&) = delete;

  // Nobody uses it any more.
  void last_user_went(Storage& storage);
  // A call that is put off needs it, until let_go(): it can be had, as if it had a user.
  void hold(Storage& storage);
  void let_go(Storage& storage);
  // Nobody refers to it any more: it is deleted, and what it alone referred to, without
  // recursion along recipes.
  void destroy(Storage& storage);

  // It has that block from now on; `written` is the work that fills it (none yet: an operator
  // is about to), `how` is what is told.
  void take_block(Storage& storage, NewBlock& block, Event written, StorageEvent::Kind how);
  // Its block is free, in stream order. `next`: kEvicted, kOffloaded, kDead, or, where a call
  // did not run, what it was before.
  void leave_block(Storage& storage, Residence next);
  // Its block lies elsewhere, and `done` put it there.
  void move_block(Storage& storage, const Block& block, Event done);
  // It is evicted, and nobody needs it any more.
  void die(Storage& storage);
  // It has a copy from now on, where `tier` says; or none any more. What was on a tier alone is
  // evicted then.
  void add_copy(Storage& storage, Tier& tier, Pieces pieces, const Fence& done);
  void drop_copy(Storage& storage);

  // How to compute it again.
  void set_recipe(Storage& storage, IntrusivePtr<Recipe> recipe);
  void drop_recipe(Storage& storage);

  // From now on it can be looked up and released, unless an open plan has it: for what lay in a
  // plan that has been closed.
  void enter(Storage& storage);
  // What is resident, by where it lies, but for what an open plan has.
  const AddressMap<Storage*>& placed() const { return placed_; }
  // A copy of it, as what is done with them may move them. Counted as looked at.
  std::vector<Storage*> by_address() const;

  // `ahead`: it was brought in ahead of need; else it has been used.
  void set_prefetched(Storage& storage, bool ahead);

  struct Counts {
    int64_t evicted_needed = 0;
    int64_t clean = 0;
    int prefetched = 0;    // and not used yet
    uint64_t changes = 1;  // of what recomputing something may read
  };
  const Counts& counts() const { return counts_; }

 private:
  void offer_to_policy(Storage& storage);
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
