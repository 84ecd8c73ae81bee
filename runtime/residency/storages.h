// All storages alive, and each change of where their bytes are: what depends on a change is
// brought up to date here, and whoever listens is told of it.
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

class Storages {
 public:
  Storages(ResidencyContext& context, StorageOwner& owner) : context_(context), owner_(owner) {}
  // Those that outlive it become kLost.
  ~Storages();
  Storages(const Storages&) = delete;
  Storages& operator=(const Storages&) = delete;

  // An empty storage: its bytes come with the operator or the upload that writes it.
  IntrusivePtr<Storage> create(Bytes bytes, Category category, const char* origin);
  // Its last user went.
  void last_user_went(Storage& storage);
  // A call that is put off needs it, until let_go(): it can be had, as if it had a user.
  void hold(Storage& storage);
  void let_go(Storage& storage);
  // Nobody refers to it any more: it is deleted, and what it alone referred to, without
  // recursion along recipes.
  void bury(Storage& storage);

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

  // All that has users, but for what has not been written yet.
  std::vector<IntrusivePtr<Storage>> in_use() const;
  // Of these, wherever they are, as they occupy the arena.
  Bytes bytes_in_use() const;
  // Newest first. `visit` may not create or destroy storages.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Storage* s = newest_; s; s = s->managed.next) visit(*s);
  }
  // Is there one for which it holds?
  template <class Predicate>
  bool any(Predicate holds) const {
    for (const Storage* s = newest_; s; s = s->managed.next) {
      if (holds(*s)) return true;
    }
    return false;
  }
  // Those that are resident.
  const AddressMap<Storage*>& placed() const { return placed_; }
  // A copy of them, as what is done with them may move them; counted as looked at.
  std::vector<Storage*> by_address() const;

  // How many are evicted and needed; are clean; were prefetched and not used yet.
  int64_t evicted_needed() const { return evicted_needed_; }
  int64_t clean() const { return clean_; }
  int prefetched() const { return prefetched_; }
  // `ahead`: it was brought in ahead of need; else it has been used.
  void set_prefetched(Storage& storage, bool ahead);

  // Grows when what recomputing something reads may have changed.
  uint64_t change() const { return change_; }
  void count_change() { ++change_; }

 private:
  void offer_to_policy(Storage& storage);
  void put_in_place(Storage& storage);
  void take_from_place(Storage& storage);
  void poison(Storage& storage);
  void unlink(Storage& storage);
  void settle_evicted(Storage& storage);

  ResidencyContext& context_;
  StorageOwner& owner_;
  Storage* newest_ = nullptr;  // all alive, a list
  AddressMap<Storage*> placed_;
  int64_t evicted_needed_ = 0;
  int64_t clean_ = 0;
  int prefetched_ = 0;
  uint64_t change_ = 1;
  uint32_t next_id_ = 1;
  uint32_t slots_ = 0;                // handed out so far
  std::vector<uint32_t> free_slots_;  // of storages that are gone
  std::vector<Storage*> graveyard_;   // to be deleted
  bool burying_ = false;
};

inline std::optional<Offset> offset_of(const Storage& storage) {
  if (!storage.resident()) return std::nullopt;
  return storage.managed.block.offset;
}

}  // namespace tidemark
