// What somebody knows about storages, kept beside them: a storage does not know who keeps
// something about it. Looked up by its slot, so in the time of reading an array.
//
//   SlotTable<Place> places;
//   places[storage].number = 3;
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/tensor/storage.h"

namespace tidemark {

template <class T>
class SlotTable {
 public:
  // T() for a storage about which nothing is known yet, also if its slot was another's.
  // References hold until the next is asked for.
  T& operator[](const Storage& storage) {
    if (storage.slot() >= entries_.size()) entries_.resize(storage.slot() + size_t{1});
    Entry& entry = entries_[storage.slot()];
    if (entry.id != storage.id()) entry = {storage.id(), T()};
    return entry.value;
  }
  // The same, of a storage that may be unknown; null then.
  T* find(const Storage& storage) {
    return knows(storage) ? &entries_[storage.slot()].value : nullptr;
  }
  const T* find(const Storage& storage) const {
    return knows(storage) ? &entries_[storage.slot()].value : nullptr;
  }

 private:
  struct Entry {
    uint32_t id = 0;  // of the storage; 0: of none
    T value{};
  };
  bool knows(const Storage& storage) const {
    return storage.slot() < entries_.size() && entries_[storage.slot()].id == storage.id();
  }

  std::vector<Entry> entries_;
};

}  // namespace tidemark
