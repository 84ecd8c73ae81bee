// The unit of residency: one block of bytes, wherever it is at the moment.
//
// Tensors are views of a storage. Two counts keep it: `users` (tensor handles, saved tensors,
// pending operators) are those who will want its bytes; references (IntrusivePtr) are users and
// also the recipes that read it. When the last user goes its block is freed at once, in stream
// order; what remains is a node of the recomputation graph, for as long as a recipe needs it.
//
//            execute              evict                     (no copy; recipe runs again)
//   kEmpty ----------> kResident <--------> kEvicted
//                       |  ^   recompute
//               offload |  | reload
//                       v  |
//                      kOffloaded     on a tier: host or disk
//   kDead: no user wants it any more and its block is gone; its recipe may still be of use.
//   kLost: its bytes cannot be had again (the session is gone, or its recomputation is
//   impossible).
//
// A resident storage may keep a valid copy on a tier ("clean"): releasing it again is free.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/core/category.h"
#include "runtime/core/intrusive_ptr.h"
#include "runtime/core/units.h"
#include "runtime/device/stream.h"
#include "runtime/memory/tier.h"

namespace tidemark {

class Recipe;
class Storage;

enum class Residence : uint8_t { kEmpty, kResident, kEvicted, kOffloaded, kDead, kLost };

// Who keeps a storage's bytes: the residency manager, told here without being known here.
class StorageOwner {
 public:
  virtual ~StorageOwner() = default;
  // The last user went.
  virtual void on_unused(Storage& storage) = 0;
  // The last reference went; deletes it, without recursion along recipes.
  virtual void on_unreferenced(Storage& storage) = 0;
};

class Storage final : public RefCounted {
 public:
  Storage(StorageOwner* owner, uint32_t id, uint32_t slot, Bytes bytes, Category category,
          const char* origin);
  ~Storage() override;

  // No two of an owner have the same; from 1.
  uint32_t id() const { return id_; }
  // Its place in tables about the owner's storages (slot_table.h): small numbers, from 0. When
  // it is gone another may have it.
  uint32_t slot() const { return slot_; }
  Bytes bytes() const { return bytes_; }           // as asked for
  Bytes size() const { return align_up(bytes_); }  // as it occupies the arena
  // The operator that made it, or "upload"; static text.
  const char* origin() const { return origin_; }
  StorageOwner* owner() const { return owner_; }
  int64_t users() const { return users_; }
  // Counts in-place writes.
  uint32_t version() const { return version_; }
  Residence residence() const { return residence_; }
  bool resident() const { return residence_ == Residence::kResident; }

  // DELTA's flags. evict_pinned: may be offloaded, not evicted. offload_pinned: the reverse.
  bool evict_pinned = false;
  bool offload_pinned = false;

  Category category;
  // What people know it by (runtime/core/names.h): "layer3.2.conv1.weight", or the call that it
  // came from, "layer3.2.conv1: conv2d". Nothing depends on it.
  const char* name;
  // When it was last used, on the issue clock; s(t) counts from here.
  Nanos last_access{0};

  void add_user() { ++users_; }
  void release_user() {
    if (--users_ == 0 && owner_) owner_->on_unused(*this);
  }

 private:
  friend class Residency;
  void dispose() override;

  StorageOwner* owner_;
  const uint32_t id_;
  const uint32_t slot_;
  const Bytes bytes_;
  const char* origin_;
  int64_t users_ = 0;
  uint32_t version_ = 0;    // of in-place writes, those that the program has issued
  uint32_t unwritten_ = 0;  // of them, those by calls that are put off
  Residence residence_ = Residence::kEmpty;

  // The rest is the residency manager's.
  IntrusivePtr<Recipe> recipe_;  // how to compute it again; null: it cannot be
  int32_t readers_ = 0;          // recipes alive that read it
  int32_t pins_ = 0;             // an operator being issued needs it where it is
  int32_t wanted_ = 0;    // a recomputation under way will read it: offload, do not evict
  int32_t put_off_ = 0;   // calls that are put off need it: it may be released, but not lost
  Block block_;           // in the arena, if resident
  Event written_;         // the work that last wrote it
  Fence touched_;         // the last work of each stream that reads or writes the block
  Tier* tier_ = nullptr;  // where a valid copy is; null: nowhere
  Pieces tier_pieces_;
  Fence tier_fence_;           // the last work that reads or writes the copy
  bool prefetched_ = false;    // brought in ahead of need and not used yet
  mutable uint64_t mark_ = 0;  // of graph walks
  mutable uint64_t runnable_at_ =
      0;  // the epoch in which its recipe was last found to be runnable
  // Would recomputing it read what is being written, and when that was found (change_).
  mutable bool depends_on_written_ = false;
  mutable uint64_t dependence_at_ = 0;
  bool being_written_ = false;  // one of the residency manager's writing_
  Storage* next_ = nullptr;     // all storages of the owner
  Storage* previous_ = nullptr;
};

// A user of a storage: keeps its bytes obtainable.
class StorageUse {
 public:
  StorageUse() = default;
  explicit StorageUse(IntrusivePtr<Storage> storage) : storage_(std::move(storage)) {
    if (storage_) storage_->add_user();
  }
  StorageUse(const StorageUse& other) : StorageUse(other.storage_) {}
  StorageUse(StorageUse&& other) noexcept = default;
  StorageUse& operator=(StorageUse other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StorageUse() {
    if (storage_) storage_->release_user();
  }

  Storage* get() const { return storage_.get(); }
  Storage* operator->() const { return storage_.get(); }
  Storage& operator*() const { return *storage_; }
  explicit operator bool() const { return static_cast<bool>(storage_); }
  const IntrusivePtr<Storage>& ptr() const { return storage_; }

 private:
  IntrusivePtr<Storage> storage_;
};

}  // namespace tidemark
