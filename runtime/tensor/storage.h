// The unit of residency: one block of bytes, wherever its bytes are at the moment.
//
// Tensors are views of a storage. Two counts keep it alive: `users` (tensor handles, saved
// tensors, pending operators) need its bytes; references (IntrusivePtr) are users and also the
// recipes that read it. When the last user goes, its block is freed at once, in stream order.
// The storage then remains as a node of the recomputation graph, for as long as a recipe needs
// it.
//
// Where its bytes may be, and how that changes: schedule/storage_state.h.
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
#include "runtime/schedule/storage_state.h"

namespace tidemark {

class Recipe;
class Storage;

// The origin of uploaded storages.
inline constexpr const char* kOriginUpload = "upload";

// Receives storages' notifications: the residency manager, without a dependency on it.
class StorageOwner {
 public:
  virtual ~StorageOwner() = default;
  // The storage lost its last user.
  virtual void on_unused(Storage& storage) = 0;
  // The storage lost its last reference. Deletes it, without recursion along recipes.
  virtual void on_unreferenced(Storage& storage) = 0;
};

// The residency manager's data about a storage.
struct ManagedStorage : StorageState {
  uint32_t version = 0;    // in-place writes, as issued by the program
  uint32_t unwritten = 0;  // of `version`, those by deferred calls
  // Recomputes it, or computes it first, if its call is deferred. Null: cannot be recomputed.
  IntrusivePtr<Recipe> recipe;
  Block block;           // in the arena, if resident
  Event written;         // the work that last wrote it
  Fence touched;         // the last work of each stream that reads or writes the block
  Tier* tier = nullptr;  // holds the copy; null: no copy
  Pieces tier_pieces;
  Fence tier_fence;            // the last work that reads or writes the copy
  bool prefetched = false;     // prefetched and not used yet
  bool being_written = false;  // in place, by the call being issued
  Storage* next = nullptr;     // list of the owner's storages
  Storage* previous = nullptr;
  // For walks over the graph of recipes (residency/recipe_graph.h).
  mutable uint64_t mark = 0;
  mutable uint64_t runnable_at = 0;
  mutable uint64_t dependence_at = 0;
  mutable bool depends_on_written = false;
};

class Storage final : public RefCounted {
 public:
  Storage(StorageOwner* owner, uint32_t id, uint32_t slot, Bytes bytes, Category category,
          const char* origin);
  ~Storage() override;

  // Unique within an owner; starts at 1.
  uint32_t id() const { return id_; }
  // Index into tables about the owner's storages (slot_table.h): small numbers, from 0. Reused
  // after the storage has been deleted.
  uint32_t slot() const { return slot_; }
  Bytes bytes() const { return bytes_; }           // as requested
  Bytes size() const { return align_up(bytes_); }  // rounded up as in the arena
  // The operator that made it, or "upload"; static text.
  const char* origin() const { return origin_; }
  StorageOwner* owner() const { return owner_; }
  // The owner has been destroyed.
  void orphan() { owner_ = nullptr; }
  int64_t users() const { return managed.users; }
  // Number of in-place writes.
  uint32_t version() const { return managed.version; }
  Residence residence() const { return managed.residence(); }
  bool resident() const { return managed.resident(); }

  // DELTA's flags. evict_pinned: may be offloaded, not evicted. offload_pinned: the reverse.
  bool evict_pinned = false;
  bool offload_pinned = false;

  Category category;
  // For people (runtime/core/names.h): "layer3.2.conv1.weight", or the call that made it,
  // "layer3.2.conv1: conv2d". Affects no decision.
  const char* name;
  // The last use, on the issue clock; s(t) counts from here.
  Nanos last_access{0};

  void add_user() { ++managed.users; }
  void release_user() {
    if (--managed.users == 0 && owner_) owner_->on_unused(*this);
  }

  // Written only by the owner.
  ManagedStorage managed;

 private:
  void dispose() override;

  StorageOwner* owner_;
  const uint32_t id_;
  const uint32_t slot_;
  const Bytes bytes_;
  const char* origin_;
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
