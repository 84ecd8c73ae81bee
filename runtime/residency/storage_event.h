// What happens to storages, told as it happens: to write steps down, to match them, to count,
// to keep a policy's candidates. Who listens changes nothing of what it is told about.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/telemetry/event_log.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

struct StorageEvent {
  enum class Kind : uint8_t {
    kPlaced,       // it has a block, for an operator to write
    kUploaded,     // it has a block, and is filled from host memory
    kReloaded,     // it has a block again, and is filled from its copy on a tier
    kPrefetched,   // the same, ahead of need
    kUsed,         // work that reads or writes its block has been issued
    kEvicted,      // by a decision; kLeft follows
    kOffloaded,    // the same
    kDropped,      // the same; a copy was on a tier already
    kCopiedOut,    // and stays
    kCopyDropped,  // what is on a tier is to be recomputed instead
    kLeft,         // its block is free, for whatever reason
    kMoved,        // its block lies elsewhere from now on
    kUnused,       // its last user went
    kDied,         // nobody uses it and its bytes are nowhere; it had no block
    kGone,         // it is about to be deleted
    kCall,         // of none: the program calls an operator; nothing is done for it yet
    kRun,       // of none: a call, the program's or one that is run again, takes its blocks now
    kIssued,    // of none: a call of the program is launched, its places by no schedule
    kCallDone,  // of none: the policy's moment after a call of the program is over
  };
  Kind kind = Kind::kCallDone;
  Storage* storage = nullptr;
  Reason reason = Reason::kNone;  // of a decision, a move and a recomputation: what for
  const Recipe* call = nullptr;   // of kCall, kRun and kIssued
  Nanos cost{0};                  // of kIssued: what the call is expected to take
};

// It has a block that it had not before.
inline bool is_block(const StorageEvent& event) {
  using Kind = StorageEvent::Kind;
  return event.kind == Kind::kPlaced || event.kind == Kind::kUploaded ||
         event.kind == Kind::kReloaded || event.kind == Kind::kPrefetched;
}

// It went to a tier, and has no block.
inline bool goes_away(const StorageEvent& event) {
  using Kind = StorageEvent::Kind;
  return event.kind == Kind::kOffloaded || event.kind == Kind::kDropped;
}

// It may have been on a tier alone, and is not any more.
inline bool ends_absence(const StorageEvent& event) {
  using Kind = StorageEvent::Kind;
  switch (event.kind) {
    case Kind::kReloaded:
    case Kind::kPrefetched:
    case Kind::kCopyDropped:
    case Kind::kDied:
    case Kind::kGone: return true;
    default: return false;
  }
}

// Its bytes are nowhere: it was evicted, or nobody uses it any more and its recipe is kept;
// both, for what is evicted first.
inline bool loses_bytes(const StorageEvent& event) {
  using Kind = StorageEvent::Kind;
  if (event.kind != Kind::kLeft) {
    return event.kind == Kind::kCopyDropped || event.kind == Kind::kDied;
  }
  const Residence now = event.storage->residence();
  return now == Residence::kEvicted || now == Residence::kDead;
}

class StorageListener {
 public:
  virtual ~StorageListener() = default;
  // May neither throw nor use the session.
  virtual void on_event(const StorageEvent& event) noexcept = 0;
};

// All that happens, in order, to those who listen.
class StorageEvents {
 public:
  // Told from now on; it outlives that.
  void listen(StorageListener& listener) { listeners_.push_back(&listener); }
  // Not any more, if it was.
  void ignore(StorageListener& listener) { std::erase(listeners_, &listener); }
  void tell(const StorageEvent& event) const {
    for (StorageListener* listener : listeners_) listener->on_event(event);
  }
  void tell(StorageEvent::Kind kind, Storage* storage = nullptr,
            Reason reason = Reason::kNone) const {
    tell({.kind = kind, .storage = storage, .reason = reason});
  }

 private:
  std::vector<StorageListener*> listeners_;  // in the order in which they came
};

}  // namespace tidemark
