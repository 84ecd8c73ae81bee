// What decides: which storage to release (Filter), how (Director), what to fetch ahead
// (Prefetcher). Declared here for the mechanism to ask; implemented in delta/.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>

#include "runtime/core/units.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class Residency;

enum class Action : uint8_t { kEvict, kOffload };

class ReleasePolicy {
 public:
  virtual ~ReleasePolicy() = default;

  // The set of storages that may be released: resident, and not pinned by nature. An operator's
  // own pins come and go without notice: choose() asks Residency::may_release().
  virtual void add(Storage& storage) = 0;
  virtual void remove(Storage& storage) = 0;
  // Its last_access has advanced to now.
  virtual void touch(Storage& storage) = 0;

  // Filter: the best to release now, or null.
  virtual Storage* choose(const Residency& residency) = 0;
  // Director. Asked only when both are possible.
  virtual Action decide(const Residency& residency, Storage& storage) = 0;
  // An offloaded storage is needed and could be recomputed instead: should it be?
  virtual bool recompute_offloaded(const Residency& residency, Storage& storage) = 0;
  // May anything be released now, other than as the last resort?
  virtual bool may_release_now(const Residency& residency) const = 0;

  // A storage went to a tier, or came back or was given up.
  virtual void on_offloaded(Storage& storage) = 0;
  virtual void on_fetched(Storage& storage) = 0;
  // An operator has been issued: the moment for early start and prefetching.
  virtual void after_operator(Residency& residency) = 0;
};

}  // namespace tidemark
