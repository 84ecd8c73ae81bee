// All storages alive.
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
  // Those that outlive it have no owner any more.
  ~Storages();
  Storages(const Storages&) = delete;
  Storages& operator=(const Storages&) = delete;

  // An empty storage: its bytes come with the operator or the upload that writes it.
  IntrusivePtr<Storage> create(Bytes bytes, Category category, const char* origin);
  // REQUIRES: nobody refers to it.
  void destroy(Storage& storage);

  // All that has users, but for what has not been written yet. Newest first.
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

 private:
  StorageOwner& owner_;
  Storage* newest_ = nullptr;  // a list
  uint32_t next_id_ = 1;
  uint32_t slots_ = 0;                // handed out so far
  std::vector<uint32_t> free_slots_;  // of storages that are gone
};

}  // namespace tidemark
