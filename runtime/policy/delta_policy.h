// DELTA (Tang et al., 2022): Filter, Director and Prefetcher, with the paper's assumptions as
// switches. What is ours in it are repairs, each of which can be taken back:
//   - Assumption 2 (nothing is released in backward) is off, as a budget must hold there too;
//   - the prefetcher (Algorithm 4) stops when memory *or* the count runs out;
//   - an offloaded storage that is needed is recomputed only if that is cheaper than reloading;
//   - gradients, which the paper never releases, are offloaded rather than evicted.
//
// Threads: the session's issuing thread.
#pragma once

#include <string>

#include "runtime/policy/release_index.h"
#include "runtime/policy/storage_queue.h"
#include "runtime/residency/policy.h"

namespace tidemark {

struct DeltaOptions {
  // Filter: "base" (the paper's choice, and what empty means), "lru", "greedy".
  std::string filter{};
  // Release as soon as this share of the arena is in use, ahead of need, so that copies overlap
  // compute (Section 4.3: three quarters). 0: off. Best effort: what the last operator touched
  // stays.
  double early_start = 0.75;
  // Prefetcher: at most this many storages brought back and not yet used. 0: off.
  int prefetch = 4;
  // The paper's Assumption 2: nothing is released in backward, but as the last resort.
  bool assumption2 = false;
  // The paper's rule for an offloaded storage that is needed: recompute unless that is
  // impossible. Off: whichever is cheaper.
  bool always_recompute = false;
  // Tide: at most so much work on a schedule (planner/releases/release_planner.h). 0: as much
  // as steps are worth.
  int64_t plan_effort = 0;
};

class DeltaPolicy final : public ReleasePolicy {
 public:
  // `known_to_fit`: early start has nothing to do. Throws UsageError for an unknown filter or
  // values out of range.
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
  // Offloaded storages, the next to prefetch first: what forward offloads is wanted again in
  // the reverse order; what is offloaded later is wanted last.
  StorageQueue queue_;
  bool in_forward_ = true;
  bool starts_early_ = false;  // at this moment; the prefetcher's turn comes after that
};

}  // namespace tidemark
