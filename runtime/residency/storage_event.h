// Reports storage events as they happen: to record and match steps, to count, and to maintain a
// policy's candidates. Listeners change nothing that an event is about.
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
    kPlaced,       // got a block for an operator to write
    kUploaded,     // got a block, being filled from host memory
    kReloaded,     // got a block again, being filled from its copy on a tier
    kPrefetched,   // as kReloaded, but ahead of need
    kUsed,         // work that reads or writes its block has been issued
    kEvicted,      // by a decision; kLeft follows
    kOffloaded,    // as kEvicted
    kDropped,      // as kEvicted; a tier already had a copy
    kCopiedOut,    // to a tier; its block stays
    kCopyDropped,  // its copy is dropped, so it will be recomputed
    kLeft,         // its block is free, or another's, for any reason
    kMoved,        // its block has a new offset
    kUnused,       // lost its last user
    kDied,         // unused and without bytes; it had no block
    kGone,         // about to be deleted
    kCall,         // no storage: the program calls an operator; no work has been done yet
    kRun,          // no storage: a call, new or recomputed, allocates its blocks now
    kIssued,       // no storage: a program's call was launched, without placement
    kCallDone,     // no storage: the policy has finished after a program's call
  };
  Kind kind = Kind::kCallDone;
  Storage* storage = nullptr;
  Reason reason = Reason::kNone;  // why: for decisions, moves, recomputations
  const Recipe* call = nullptr;   // for kCall, kRun and kIssued
  Nanos cost{0};                  // for kIssued: the call's expected duration
};

// Whether the storage got a block that it did not have before.
inline bool is_block(const StorageEvent& event) {
  using Kind = StorageEvent::Kind;
  return event.kind == Kind::kPlaced || event.kind == Kind::kUploaded ||
         event.kind == Kind::kReloaded || event.kind == Kind::kPrefetched;
}

// Whether the storage went to a tier and lost its block.
inline bool goes_away(const StorageEvent& event) {
  using Kind = StorageEvent::Kind;
  return event.kind == Kind::kOffloaded || event.kind == Kind::kDropped;
}

// Whether the storage may have been only on a tier until now.
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

// Whether the storage has lost its bytes: it was evicted, or is unused with its recipe kept.
// True twice for storages that are evicted first.
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

// Sends every event, in order, to each listener.
class StorageEvents {
 public:
  // Adds a listener, which must outlive its registration.
  void listen(StorageListener& listener) { listeners_.push_back(&listener); }
  // Removes a listener; no-op if it is not registered.
  void ignore(StorageListener& listener) { std::erase(listeners_, &listener); }
  void tell(const StorageEvent& event) const {
    for (StorageListener* listener : listeners_) listener->on_event(event);
  }
  void tell(StorageEvent::Kind kind, Storage* storage = nullptr,
            Reason reason = Reason::kNone) const {
    tell({.kind = kind, .storage = storage, .reason = reason});
  }

 private:
  std::vector<StorageListener*> listeners_;  // in order of registration
};

}  // namespace tidemark
