// What decides: which storage to release (Filter), how (Director), what to fetch ahead
// (Prefetcher). Declared here for the mechanism to ask; implemented in policy/.
//
// What every policy must answer is pure; what only some care for does nothing by default.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/core/units.h"
#include "runtime/residency/storage_event.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class Recipe;
class Residency;

enum class Action : uint8_t { kEvict, kOffload };

class ReleasePolicy : public StorageListener {
 public:
  // The set of storages that may be released: resident, and not pinned by nature. An operator's
  // own pins come and go without notice: choose() asks Residency::may_release().
  virtual void add(Storage& storage) = 0;
  virtual void remove(Storage& storage) = 0;
  // Its last_access has advanced to now.
  virtual void touch(Storage& storage) = 0;

  // Filter: the best to release now, or null.
  virtual Storage* choose(const Residency& residency) = 0;
  // What releasing it is expected to cost later on, not below 0. Policies that know let whole
  // runs of neighbouring blocks be released for one hole, where that costs less than sliding
  // blocks together does; none: never.
  virtual std::optional<Nanos> price(const Residency& /*residency*/, Storage& /*storage*/) {
    return std::nullopt;
  }
  virtual bool knows_prices() const { return false; }
  // May it be offloaded other than as the last resort?
  virtual bool may_offload(const Storage& /*storage*/) const { return true; }
  // Director. Asked only when both are possible.
  virtual Action decide(const Residency& residency, Storage& storage) = 0;
  // An offloaded storage is needed and could be recomputed instead: should it be?
  virtual bool recompute_offloaded(const Residency& residency, Storage& storage) = 0;
  // May anything be released now, other than as the last resort?
  virtual bool may_release_now(const Residency& residency) const = 0;

  // Told of all that happens to storages, before other listeners are.
  void on_event(const StorageEvent& /*event*/) noexcept override {}
  // The program has issued a call (a recomputation is not one): the moment for early start and
  // prefetching. May throw; the call stands.
  virtual void after_operator(Residency& /*residency*/, const Recipe& /*call*/) {}
  virtual void begin_step(Residency& /*residency*/) {}
  virtual void end_step(Residency& /*residency*/) {}
};

}  // namespace tidemark
