// The releasable storages, ordered so that the exact best by a filter is found in O(distinct
// sizes): one list per size, stalest first. Training programs have a few dozen sizes and
// thousands of tensors.
//
//   size 51 MiB:  stalest <-> ... <-> freshest     compare only the first of each list
//   size 12 MiB:  stalest <-> ... <-> freshest
//
// Links live in a table by slot: adding, removing and touching are O(1), except that adding a
// storage between the stalest and the freshest walks from both ends.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/tensor/slot_table.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class ReleaseIndex {
 public:
  void add(Storage& storage);
  // No-op if the storage is not in the index.
  void remove(Storage& storage);
  void touch(Storage& storage);
  bool contains(const Storage& storage) const { return link_of(storage).bucket != nullptr; }
  size_t size() const { return size_; }

  // Visits every storage, one size after the other, stalest first. `visit` may not change the
  // index.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& bucket : buckets_) {
      for (Storage* s = bucket->stalest; s; s = link_of(*s).next) visit(*s);
    }
  }

  // The eligible storage with the least score. Ties go to the stalest within one size, then to
  // the least id. Null if no storage is eligible.
  template <class Eligible>
  Storage* best(FilterFn score, Nanos now, Eligible eligible) const {
    Storage* best = nullptr;
    double best_score = 0;
    for (const auto& bucket : buckets_) {
      Storage* storage = bucket->stalest;
      while (storage && !eligible(*storage)) storage = link_of(*storage).next;
      if (!storage) continue;
      const double value = score(static_cast<double>(bucket->size.count()),
                                 static_cast<double>((now - storage->last_access).count()));
      if (!best || value < best_score || (value == best_score && storage->id() < best->id())) {
        best = storage;
        best_score = value;
      }
    }
    return best;
  }

 private:
  struct Bucket {
    Bytes size{0};
    Storage* stalest = nullptr;
    Storage* freshest = nullptr;
  };

  struct Link {
    Storage* previous = nullptr;
    Storage* next = nullptr;
    Bucket* bucket = nullptr;  // null: not in the index
  };

  Link link_of(const Storage& storage) const {
    const Link* link = links_.find(storage);
    return link ? *link : Link();
  }
  Bucket& bucket_of(Bytes size);
  void unlink(Bucket& bucket, Storage& storage);
  void link(Bucket& bucket, Storage& storage);

  SlotTable<Link> links_;

  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::unordered_map<int64_t, Bucket*> by_size_;
  size_t size_ = 0;
};

}  // namespace tidemark
