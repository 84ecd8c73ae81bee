// One class's data about storages, kept outside the storages, which do not know their
// observers. Lookup by slot is as fast as reading an array.
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
  // T() for a storage without data, also if its slot belonged to another storage before.
  // References are valid until the next call.
  T& operator[](const Storage& storage) {
    if (storage.slot() >= entries_.size()) entries_.resize(storage.slot() + size_t{1});
    Entry& entry = entries_[storage.slot()];
    if (entry.id != storage.id()) entry = {storage.id(), T()};
    return entry.value;
  }
  // As operator[], but null for a storage without data.
  T* find(const Storage& storage) {
    return knows(storage) ? &entries_[storage.slot()].value : nullptr;
  }
  const T* find(const Storage& storage) const {
    return knows(storage) ? &entries_[storage.slot()].value : nullptr;
  }

 private:
  struct Entry {
    uint32_t id = 0;  // storage; 0: none
    T value{};
  };
  bool knows(const Storage& storage) const {
    return storage.slot() < entries_.size() && entries_[storage.slot()].id == storage.id();
  }

  std::vector<Entry> entries_;
};

}  // namespace tidemark
