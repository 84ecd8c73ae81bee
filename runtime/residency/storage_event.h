// What happens to storages, told as it happens: to write steps down, to match them, to count.
// Nothing is decided by it, and nobody acts on it.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>

#include "runtime/telemetry/event_log.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

struct StorageEvent {
  enum class Kind : uint8_t {
    kBlock,        // it has a block: for an operator to write, an upload, a reload needed now
    kPrefetched,   // the same, for a reload ahead of need
    kUsed,         // work that reads or writes its block has been issued
    kEvicted,      // by a decision; kLeft follows
    kOffloaded,    // the same
    kDropped,      // the same; a copy was on a tier already
    kCopiedOut,    // and stays
    kCopyGivenUp,  // what is on a tier is to be recomputed instead
    kLeft,         // its block is free, for whatever reason
    kMoved,        // its block lies elsewhere from now on
    kUnused,       // its last user went
    kGone,         // it is about to be deleted
    kCall,         // of none: the program calls an operator; nothing is done for it yet
    kCallDone,     // of none: the policy's moment after a call of the program is over
  };
  Kind kind = Kind::kCallDone;
  Storage* storage = nullptr;
  Reason reason = Reason::kNone;  // of a decision, and of a move: what for
  const Recipe* call = nullptr;   // of kCall
};

class StorageListener {
 public:
  virtual ~StorageListener() = default;
  // May neither throw nor use the session.
  virtual void on_event(const StorageEvent& event) noexcept = 0;
};

}  // namespace tidemark
