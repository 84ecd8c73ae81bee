// A policy's read-only view of memory: which storages may be released and at what cost, the
// clock, the arena and the tiers. A policy changes memory only by returning a Decision
// (policy.h).
//
// View (view.h) is the implementation for programs; a test may have its own.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

// The phase of a training step, which helps to predict the next uses.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

class MemoryView {
 public:
  // Whether it is resident, and neither pinned by an operator nor claimed by a recomputation.
  virtual bool may_release(const Storage& storage) const = 0;
  // Whether it could be recomputed now.
  virtual bool may_evict(Storage& storage) const = 0;
  // Whether it is resident with a valid copy on a tier. Releasing it is then free.
  virtual bool has_copy(const Storage& storage) const = 0;

  // c_r: time to recompute it and its ancestors that are not resident; offloaded ancestors
  // count their reload cost. None if impossible. Stops counting once above `enough`.
  virtual std::optional<Nanos> recompute_cost(Storage& storage, Nanos enough) const = 0;
  // c_s, one way: the expected reload time from its tier, or from the nearest tier if it has no
  // copy.
  virtual Nanos reload_cost(const Storage& storage) const = 0;
  virtual const CostModel& costs() const = 0;

  // The issue clock, advanced by the cost of each operator.
  virtual Nanos clock() const = 0;
  virtual Phase phase() const = 0;

  // The arena's size and use.
  virtual Bytes capacity() const = 0;
  virtual Bytes used() const = 0;
  // The limit of the nearest tier; 0 without one.
  virtual Bytes tier_space() const = 0;
  // Number of storages prefetched but not yet used.
  virtual int prefetched() const = 0;

  // Counts objects that the policy examines on its own (effort.h).
  virtual void examine(int64_t count) const = 0;

 protected:
  ~MemoryView() = default;
};

}  // namespace tidemark
