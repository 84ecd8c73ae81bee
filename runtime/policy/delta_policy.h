// DELTA (Tang et al., 2022): Filter, Director and Prefetcher. Where ours differs from the
// paper's method as printed, a switch of DeltaRepairs says so and undoes it.
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
  // `repairs`: before the options change them. `known_to_fit`: early start is off. Throws
  // UsageError for an unknown filter or repair, or values out of range.
  DeltaPolicy(const DeltaOptions& options, bool known_to_fit, const DeltaRepairs& repairs = {});

  void add(Storage& storage) override { index_.add(storage); }
  void remove(Storage& storage) override { index_.remove(storage); }
  void touch(Storage& storage) override { index_.touch(storage); }
  Storage* choose(const MemoryView& view) override;
  bool may_evict(const Storage& storage) const override;
  Action decide(const MemoryView& view, Storage& storage) override;
  bool recompute_offloaded(const MemoryView& view, Storage& storage) override;
  bool may_release_now(const MemoryView& view) const override;
  bool waits_for_offloads() const override { return !repairs_.async; }
  void on_event(const StorageEvent& event) noexcept override;
  Decision after_operator(const MemoryView& view, Outcome last) override;

 private:
  Decision start_early(const MemoryView& view) const;
  Decision prefetch(const MemoryView& view) const;

  const DeltaOptions options_;
  const DeltaRepairs repairs_;
  const FilterFn score_;
  const bool known_to_fit_;
  ReleaseIndex index_;
  // Offloaded storages, in prefetch order: storages offloaded in forward are needed again in
  // reverse order; storages offloaded later are needed last.
  StorageQueue queue_;
  bool in_forward_ = true;
  bool was_missed_ = false;    // an offloaded storage was needed since the last operator
  bool starts_early_ = false;  // now; the prefetcher runs after it
  bool prefetches_ = false;    // after this operator
};

}  // namespace tidemark
