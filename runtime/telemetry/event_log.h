// One event per operator and per action on memory: the source of tables, traces and live views.
//
// A bounded ring of plain records, written by the issuing thread; the oldest are overwritten.
// Recording takes a few stores, no lock and no allocation. Times become known later: `tag`
// matches an event with the device's Completion, and `complete()` fills in its times.
//
// Threads: the issuing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

enum class EventKind : uint8_t {
  kOperator,   // an operator of the program
  kRecompute,  // an operator run again
  kEvict,      // bytes freed, to be recomputed
  kCopyOut,    // copied out ahead of need; its block stays
  kOffload,    // copied out and freed
  kReload,     // copied in because it was needed
  kPrefetch,   // copied in ahead of need
  kDropClean,  // freed; a valid copy is on a tier
  kDropCopy,   // copy on a tier dropped: recomputed instead of reloaded
  kCompact,    // moved within the arena
  kStepBegin,
  kStepEnd,
  kOutOfMemory,
};

enum class Reason : uint8_t {
  kNone,
  kNoSpace,      // an allocation did not fit
  kEarlyStart,   // more than the early-start share was in use
  kAustere,      // the last resort before giving up
  kNeeded,       // an operator's input
  kOverwritten,  // an input of its recipe is about to be written
  kInPlace,      // an operator: its output took the block of an input
  kEndOfStep,
  kPlan,  // as planned
};

struct EventRecord {
  uint64_t tag = 0;  // unique, increasing from 1
  EventKind kind = EventKind::kOperator;
  Reason reason = Reason::kNone;
  uint8_t stream = 0;    // StreamId, for events on a stream
  uint8_t category = 0;  // Category of the storage
  uint32_t storage = 0;  // id; 0: none; for a step mark: the session's step, from 1
  // The call ("layer3.2.conv1: conv2d") or the storage; lives as long as the process.
  const char* name = "";
  const char* op = "";     // the operator, or the storage's maker; static text
  Bytes bytes{0};          // moved or freed
  Nanos issued{0};         // on the issue clock
  Nanos expected{0};       // modelled cost; at a step's end: the host's planning before it
  Nanos start{0}, end{0};  // on the device's clock; 0 until completed
  Bytes used{0};           // in the arena, afterwards
};

std::string_view to_string(EventKind kind);
std::string_view to_string(Reason reason);

class EventLog {
 public:
  explicit EventLog(size_t capacity = 1 << 16);  // at least 1

  uint64_t next_tag() const { return next_tag_; }
  // Stores the event under the next tag, and returns the tag.
  uint64_t record(EventRecord event);
  // Sets an event's times. Ignored if `tag` is 0, not yet recorded, or overwritten.
  void complete(uint64_t tag, Nanos start, Nanos end);
  // Null if the event is not in the ring.
  const EventRecord* find(uint64_t tag) const;

  // Visits each event, oldest first.
  void for_each(const std::function<void(const EventRecord&)>& visit) const;
  uint64_t dropped() const { return next_tag_ - 1 - size(); }
  size_t size() const { return ring_.size(); }
  std::vector<EventRecord> events() const;  // oldest first

 private:
  size_t capacity_;
  std::vector<EventRecord> ring_;
  uint64_t next_tag_ = 1;
};

}  // namespace tidemark
