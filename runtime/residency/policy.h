// The interface of policies: which storage to release (Filter), how (Director), and what to
// fetch ahead (Prefetcher). Declared here for the mechanism to call; implemented in policy/.
//
// A policy sees memory through a const view and returns decisions; it never calls the
// mechanism. The mechanism reports storages that come, go and are used (add(), remove(),
// touch(), on_event()). Functions that every policy must have are pure virtual; the others do
// nothing by default.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/units.h"
#include "runtime/residency/memory_view.h"
#include "runtime/residency/storage_event.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

enum class Action : uint8_t { kEvict, kOffload };

// An action for one storage.
struct Decision {
  enum class What : uint8_t {
    kNothing,
    kRelease,  // as the policy's decide() says; free if a tier has a copy
    kEvict,
    kOffload,
    kCopyOut,   // copies to a tier; the block stays, and a later release is free
    kPrefetch,  // reloads ahead of need, if the arena has space without releases
  };
  What what = What::kNothing;
  Storage* storage = nullptr;  // null for kNothing alone
  Reason reason = Reason::kNone;
};

// The outcome of the previous decision.
enum class Outcome : uint8_t {
  kNone,  // no previous decision: the first call after this operator
  kDone,
  kImpossible,
};

class ReleasePolicy : public StorageListener {
 public:
  // The set of storages that may be released: resident, and not pinned by nature. Operators'
  // own pins come and go without notice, so choose() asks MemoryView::may_release().
  virtual void add(Storage& storage) = 0;
  virtual void remove(Storage& storage) = 0;
  // The storage's last_access has advanced to now.
  virtual void touch(Storage& storage) = 0;

  // Filter: the best storage to release now, or null.
  virtual Storage* choose(const MemoryView& view) = 0;
  // The expected later cost of releasing a storage, at least 0. With prices, a whole run of
  // neighbouring blocks may be released to make one hole, where that costs less than
  // compaction. None: no price.
  virtual std::optional<Nanos> price(const MemoryView& /*view*/, Storage& /*storage*/) {
    return std::nullopt;
  }
  virtual bool knows_prices() const { return false; }
  // Whether a storage may be offloaded other than as the last resort.
  virtual bool may_offload(const Storage& /*storage*/) const { return true; }
  virtual bool may_evict(const Storage& /*storage*/) const { return true; }  // likewise
  // Whether compute waits for each copy to a tier.
  virtual bool waits_for_offloads() const { return false; }
  // Director. Called only when both actions are possible.
  virtual Action decide(const MemoryView& view, Storage& storage) = 0;
  // Whether to recompute a needed offloaded storage that could be recomputed instead of
  // reloaded.
  virtual bool recompute_offloaded(const MemoryView& view, Storage& storage) = 0;
  // Whether anything may be released now, other than as the last resort.
  virtual bool may_release_now(const MemoryView& view) const = 0;

  // Called for every storage event and for the program's calls (kIssued), before other
  // listeners.
  void on_event(const StorageEvent& /*event*/) noexcept override {}
  // Called after the program has issued a call (not a recomputation) without a schedule, for
  // early start and prefetching. Called again with the outcome of the last decision until it
  // returns kNothing. An exception here or in applying a decision ends this; the operator's
  // call stands.
  virtual Decision after_operator(const MemoryView& /*view*/, Outcome /*last*/) { return {}; }
  virtual void begin_step(const MemoryView& /*view*/) {}
  virtual void end_step(const MemoryView& /*view*/) {}
};

}  // namespace tidemark
