// DELTA (Tang et al., 2022): Filter, Director and Prefetcher, with the paper's assumptions as
// switches. Our changes repair the paper's method; each can be undone:
//   - Assumption 2 (nothing is released in backward) is off, as a budget must hold there too;
//   - the prefetcher (Algorithm 4) stops when memory *or* the count runs out;
//   - a needed offloaded storage is recomputed only if that is cheaper than reloading;
//   - gradients, which the paper never releases, are offloaded rather than evicted.
//
// Threads: the session's issuing thread.
#pragma once

#include "runtime/policy/delta_options.h"
#include "runtime/policy/release_index.h"
#include "runtime/policy/storage_queue.h"
#include "runtime/residency/policy.h"

namespace tidemark {

class DeltaPolicy final : public ReleasePolicy {
 public:
  // `known_to_fit`: early start is off. Throws UsageError for an unknown filter or values out
  // of range.
  DeltaPolicy(const DeltaOptions& options, bool known_to_fit);

  void add(Storage& storage) override { index_.add(storage); }
  void remove(Storage& storage) override { index_.remove(storage); }
  void touch(Storage& storage) override { index_.touch(storage); }
  Storage* choose(const MemoryView& view) override;
  Action decide(const MemoryView& view, Storage& storage) override;
  bool recompute_offloaded(const MemoryView& view, Storage& storage) override;
  bool may_release_now(const MemoryView& view) const override;
  void on_event(const StorageEvent& event) noexcept override;
  Decision after_operator(const MemoryView& view, Outcome last) override;

 private:
  Decision start_early(const MemoryView& view) const;
  Decision prefetch(const MemoryView& view) const;

  const DeltaOptions options_;
  const FilterFn score_;
  const bool known_to_fit_;
  ReleaseIndex index_;
  // Offloaded storages, in prefetch order: storages offloaded in forward are needed again in
  // reverse order; storages offloaded later are needed last.
  StorageQueue queue_;
  bool in_forward_ = true;
  bool starts_early_ = false;  // now; the prefetcher runs after it
};

}  // namespace tidemark
