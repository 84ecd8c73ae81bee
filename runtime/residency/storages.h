// All living storages.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/intrusive_ptr.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class Storages {
 public:
  explicit Storages(StorageOwner& owner) : owner_(owner) {}
  // Storages that outlive this object have no owner afterwards.
  ~Storages();
  Storages(const Storages&) = delete;
  Storages& operator=(const Storages&) = delete;

  // Makes an empty storage; the operator or upload that writes it provides its bytes.
  IntrusivePtr<Storage> create(Bytes bytes, Category category, const char* origin);
  // REQUIRES: no references to the storage.
  void destroy(Storage& storage);

  // Storages with users, except those not yet written. Newest first.
  std::vector<IntrusivePtr<Storage>> in_use() const;
  // Total size of in_use(), resident or not, rounded as in the arena.
  Bytes bytes_in_use() const;
  // Visits each storage, newest first. `visit` may not create or destroy storages.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Storage* s = newest_; s; s = s->managed.next) visit(*s);
  }
  // Whether `holds` is true of any storage.
  template <class Predicate>
  bool any(Predicate holds) const {
    for (const Storage* s = newest_; s; s = s->managed.next) {
      if (holds(*s)) return true;
    }
    return false;
  }

 private:
  StorageOwner& owner_;
  Storage* newest_ = nullptr;  // a list
  uint32_t next_id_ = 1;
  uint32_t slots_ = 0;                // handed out so far
  std::vector<uint32_t> free_slots_;  // of deleted storages
};

}  // namespace tidemark
