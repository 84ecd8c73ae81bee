#include "runtime/telemetry/event_log.h"

#include <algorithm>

#include "runtime/core/errors.h"

namespace tidemark {

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::kOperator: return "operator";
    case EventKind::kRecompute: return "recompute";
    case EventKind::kEvict: return "evict";
    case EventKind::kCopyOut: return "copy out";
    case EventKind::kOffload: return "offload";
    case EventKind::kReload: return "reload";
    case EventKind::kPrefetch: return "prefetch";
    case EventKind::kDropClean: return "drop clean";
    case EventKind::kDropCopy: return "drop copy";
    case EventKind::kCompact: return "compact";
    case EventKind::kStepBegin: return "step begin";
    case EventKind::kStepEnd: return "step end";
    case EventKind::kOutOfMemory: return "out of memory";
  }
  return "?";
}

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::kNone: return "none";
    case Reason::kNoSpace: return "no space";
    case Reason::kEarlyStart: return "early start";
    case Reason::kAustere: return "austere";
    case Reason::kNeeded: return "needed";
    case Reason::kOverwritten: return "overwritten";
    case Reason::kInPlace: return "in place";
    case Reason::kEndOfStep: return "end of step";
    case Reason::kPlan: return "plan";
  }
  return "?";
}

EventLog::EventLog(size_t capacity) : capacity_(capacity) {
  TIDEMARK_CHECK(capacity > 0, "a log of no events");
  ring_.reserve(capacity);
}

uint64_t EventLog::record(EventRecord event) {
  event.tag = next_tag_++;
  if (ring_.size() < capacity_) {
    ring_.push_back(event);
  } else {
    ring_[(event.tag - 1) % capacity_] = event;
  }
  return event.tag;
}

void EventLog::complete(uint64_t tag, Nanos start, Nanos end) {
  if (EventRecord* const event = const_cast<EventRecord*>(find(tag))) {
    event->start = start;
    event->end = end;
  }
}

const EventRecord* EventLog::find(uint64_t tag) const {
  if (tag <= dropped() || tag >= next_tag_) return nullptr;
  return &ring_[(tag - 1) % capacity_];
}

void EventLog::for_each(const std::function<void(const EventRecord&)>& visit) const {
  for (uint64_t tag = dropped() + 1; tag < next_tag_; ++tag) {
    visit(ring_[(tag - 1) % capacity_]);
  }
}

std::vector<EventRecord> EventLog::events() const {
  std::vector<EventRecord> result;
  result.reserve(size());
  for_each([&](const EventRecord& event) { result.push_back(event); });
  return result;
}

}  // namespace tidemark
