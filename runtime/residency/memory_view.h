// What a policy sees of memory: what may be released, what that would cost, the clock, the
// arena and the tiers. Nothing can be changed through it; what a policy wants done it returns
// as a Decision (policy.h).
//
// View (view.h) is the one that programs use; a test may have its own.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

// Of a training step; where the program is tells what it will want next.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

class MemoryView {
 public:
  // Is it resident, and neither pinned by an operator nor claimed by a recomputation?
  virtual bool may_release(const Storage& storage) const = 0;
  // Could it be computed again, now?
  virtual bool may_evict(Storage& storage) const = 0;
  // Resident, with a valid copy on a tier? Releasing it is free then.
  virtual bool has_copy(const Storage& storage) const = 0;

  // c_r: time to recompute it with its ancestors that are not resident, offloaded ones at their
  // reload cost. None if that is impossible. Stops counting once above `enough`.
  virtual std::optional<Nanos> recompute_cost(Storage& storage, Nanos enough) const = 0;
  // c_s for one direction, as the tier that it is on (or would go to) is expected to take.
  virtual Nanos reload_cost(const Storage& storage) const = 0;
  virtual const CostModel& costs() const = 0;

  // The issue clock, advanced by the cost of each operator.
  virtual Nanos clock() const = 0;
  virtual Phase phase() const = 0;

  // Of the arena.
  virtual Bytes capacity() const = 0;
  virtual Bytes used() const = 0;
  // The limit of the nearest tier; 0 without one.
  virtual Bytes tier_space() const = 0;
  // How many storages were prefetched and have not been used yet.
  virtual int prefetched() const = 0;

 protected:
  ~MemoryView() = default;
};

}  // namespace tidemark
