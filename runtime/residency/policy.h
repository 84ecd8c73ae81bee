// What decides: which storage to release (Filter), how (Director), what to fetch ahead
// (Prefetcher). Declared here for the mechanism to ask; implemented in policy/.
//
// A policy sees memory through a const view and returns what is to be done; it never calls the
// mechanism. The mechanism tells it of storages that come, go and are used (add(), remove(),
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

// What is to be done with a storage.
struct Decision {
  enum class What : uint8_t {
    kNothing,
    kRelease,  // as the policy's own decide() says; for nothing, where a copy is on a tier
    kEvict,
    kOffload,
    kCopyOut,   // it stays; releasing it later is free
    kPrefetch,  // a reload ahead of need, if the arena has room as it is
  };
  What what = What::kNothing;
  Storage* storage = nullptr;  // null for kNothing alone
  Reason reason = Reason::kNone;
};

// What became of the decision before.
enum class Outcome : uint8_t {
  kNone,  // there was none: the first question of this moment
  kDone,
  kImpossible,
};

class ReleasePolicy : public StorageListener {
 public:
  // The set of storages that may be released: resident, and not pinned by nature. An operator's
  // own pins come and go without notice: choose() asks MemoryView::may_release().
  virtual void add(Storage& storage) = 0;
  virtual void remove(Storage& storage) = 0;
  // Its last_access has advanced to now.
  virtual void touch(Storage& storage) = 0;

  // Filter: the best to release now, or null.
  virtual Storage* choose(const MemoryView& view) = 0;
  // What releasing it is expected to cost later on, not below 0. Policies that know let whole
  // runs of neighbouring blocks be released for one hole, where that costs less than sliding
  // blocks together does; none: never.
  virtual std::optional<Nanos> price(const MemoryView& /*view*/, Storage& /*storage*/) {
    return std::nullopt;
  }
  virtual bool knows_prices() const { return false; }
  // May it be offloaded other than as the last resort?
  virtual bool may_offload(const Storage& /*storage*/) const { return true; }
  // Director. Asked only when both are possible.
  virtual Action decide(const MemoryView& view, Storage& storage) = 0;
  // An offloaded storage is needed and could be recomputed instead: should it be?
  virtual bool recompute_offloaded(const MemoryView& view, Storage& storage) = 0;
  // May anything be released now, other than as the last resort?
  virtual bool may_release_now(const MemoryView& view) const = 0;

  // Told of all that happens to storages, and of the program's calls (kIssued), before other
  // listeners are.
  void on_event(const StorageEvent& /*event*/) noexcept override {}
  // The program has issued a call (a recomputation is not one) and no plan decides: the moment
  // for early start and prefetching. Asked again, with what became of the last answer, until it
  // says kNothing. An exception, from here or from what was to be done, ends the moment; the
  // call stands.
  virtual Decision after_operator(const MemoryView& /*view*/, Outcome /*last*/) { return {}; }
  virtual void begin_step(const MemoryView& /*view*/) {}
  virtual void end_step(const MemoryView& /*view*/) {}
};

}  // namespace tidemark
