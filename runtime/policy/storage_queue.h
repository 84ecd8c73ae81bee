// A queue of storages. Removal from the middle is as fast as from an end: links are kept in a
// table by slot.
//
// Threads: the session's issuing thread.
#pragma once

#include "runtime/tensor/slot_table.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class StorageQueue {
 public:
  bool empty() const { return !first_; }
  // REQUIRES: !empty().
  Storage& front() const { return *first_; }

  // A storage that is already in the queue is moved.
  void push_front(Storage& storage) {
    remove(storage);
    link(nullptr, storage, first_);
  }
  void push_back(Storage& storage) {
    remove(storage);
    link(last_, storage, nullptr);
  }
  // No-op for a storage that is not in the queue.
  void remove(Storage& storage) {
    Link* const found = links_.find(storage);
    if (!found || !found->in_line) return;
    const Link link = *found;
    *found = {};
    (link.before ? links_[*link.before].after : first_) = link.after;
    (link.after ? links_[*link.after].before : last_) = link.before;
  }

 private:
  struct Link {
    Storage* before = nullptr;
    Storage* after = nullptr;
    bool in_line = false;
  };

  void link(Storage* before, Storage& storage, Storage* after) {
    links_[storage] = {before, after, true};
    (before ? links_[*before].after : first_) = &storage;
    (after ? links_[*after].before : last_) = &storage;
  }

  SlotTable<Link> links_;
  Storage* first_ = nullptr;
  Storage* last_ = nullptr;
};

}  // namespace tidemark
