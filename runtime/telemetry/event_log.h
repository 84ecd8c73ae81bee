// Everything the runtime does to memory, and every operator, as one event each: what tables,
// traces and live views are made from.
//
// A bounded ring of plain records, written by the issuing thread: the oldest fall out.
// Recording is a few stores, no lock, no allocation. When work ran is known later: `tag` joins
// an event with the device's Completion, and `complete()` fills in its times.
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
  kOperator,    // an operator of the program
  kRecompute,   // an operator run again
  kEvict,       // bytes freed, to be recomputed
  kCopyOut,     // copied out ahead of need, and still here
  kOffload,     // copied out and freed
  kReload,      // copied in because it was needed
  kPrefetch,    // copied in ahead of need
  kDropClean,   // freed, its copy on a tier being valid
  kGiveUpCopy,  // its copy on a tier dropped: to be recomputed instead of reloaded
  kCompact,     // moved within the arena
  kStepBegin,
  kStepEnd,
  kOutOfMemory,
};

enum class Reason : uint8_t {
  kNone,
  kNoRoom,       // an allocation did not fit
  kEarlyStart,   // more than the early-start share was in use
  kAustere,      // the last resort before giving up
  kNeeded,       // an operator's input
  kOverwritten,  // an input of its recipe is about to be written
  kEndOfStep,
  kPlan,  // as planned
};

struct EventRecord {
  uint64_t tag = 0;  // unique, increasing from 1
  EventKind kind = EventKind::kOperator;
  Reason reason = Reason::kNone;
  uint8_t stream = 0;    // StreamId; of events that ran on a stream
  uint8_t category = 0;  // Category of the storage
  uint32_t storage = 0;  // id; 0: none; of a step mark: the session's step, from 1
  // Of the call ("layer3.2.conv1: conv2d") or the storage; lives as long as the process.
  const char* name = "";
  const char* op = "";     // the operator (which made the storage); static text
  Bytes bytes{0};          // moved or freed
  Nanos issued{0};         // on the issue clock
  Nanos expected{0};       // modelled cost; of a step's end: the host's planning before it
  Nanos start{0}, end{0};  // on the device's clock; 0 until completed
  Bytes used{0};           // of the arena, after
};

std::string_view to_string(EventKind kind);
std::string_view to_string(Reason reason);

class EventLog {
 public:
  explicit EventLog(size_t capacity = 1 << 16);  // at least 1

  uint64_t next_tag() const { return next_tag_; }
  // Stores it under the next tag, which is returned.
  uint64_t record(EventRecord event);
  // When it ran. Gone from the ring already, 0, or not yet recorded: ignored.
  void complete(uint64_t tag, Nanos start, Nanos end);
  // Null if it is not in the ring.
  const EventRecord* find(uint64_t tag) const;

  // Oldest first.
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
