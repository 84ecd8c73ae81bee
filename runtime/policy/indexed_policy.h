// For policies: an index of what may be released, and the simplest answer to everything else,
// so that a policy is the few lines in which it differs. As it stands it evicts, brings back
// nothing ahead of need, and keeps nothing from step to step.
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

  // The one for which `score(storage)` is least, ties to the least id; null if there is none
  // for which it gives a number. Looks at each.
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

// Releases only what can be computed again.
class EvictOnlyPolicy : public IndexedPolicy {
 public:
  bool may_offload(const Storage& /*storage*/) const override { return false; }

 protected:
  static bool evictable(const MemoryView& view, Storage& storage) {
    return view.may_release(storage) && view.may_evict(storage);
  }
};

}  // namespace tidemark
