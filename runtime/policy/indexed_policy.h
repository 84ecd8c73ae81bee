// Base for policies: an index of releasable storages and the simplest answer to every other
// question, so that a policy states only its differences. By itself it evicts, prefetches
// nothing, and keeps no state from step to step.
#pragma once

#include "runtime/policy/release_index.h"
#include "runtime/residency/policy.h"

namespace tidemark {

class IndexedPolicy : public ReleasePolicy {
 public:
  void add(Storage& storage) override { index_.add(storage); }
  void remove(Storage& storage) override { index_.remove(storage); }
  void touch(Storage& storage) override { index_.touch(storage); }
  Action decide(const MemoryView& /*view*/, Storage& /*storage*/) override {
    return Action::kEvict;
  }
  bool recompute_offloaded(const MemoryView& /*view*/, Storage& /*storage*/) override {
    return false;
  }
  bool may_release_now(const MemoryView& /*view*/) const override { return true; }

 protected:
  const ReleaseIndex& index() const { return index_; }

  // The storage with the least `score(storage)`; ties go to the least id. Null if no storage
  // has a score. Looks at every storage.
  template <class Score>
  Storage* least(const Score& score) const {
    Storage* best = nullptr;
    double best_score = 0;
    index_.for_each([&](Storage& storage) {
      const std::optional<double> value = score(storage);
      if (!value) return;
      if (!best || *value < best_score || (*value == best_score && storage.id() < best->id())) {
        best = &storage;
        best_score = *value;
      }
    });
    return best;
  }

 private:
  ReleaseIndex index_;
};

// Releases only storages that can be recomputed.
class EvictOnlyPolicy : public IndexedPolicy {
 public:
  bool may_offload(const Storage& /*storage*/) const override { return false; }

 protected:
  static bool evictable(const MemoryView& view, Storage& storage) {
    return view.may_release(storage) && view.may_evict(storage);
  }
};

}  // namespace tidemark
