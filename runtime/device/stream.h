// Streams, events and fences: they order work without the host ever waiting.
//
// A stream runs its work in the order it was enqueued; different streams run at the same time.
// An event is a position in a stream's queue, so making one is free: `ticket` counts the work
// enqueued there, from 1; ticket 0 is always done. Only the issuing thread enqueues, and a wait
// names only work already enqueued, so streams cannot deadlock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark {

enum class StreamId : uint8_t {
  kCompute,  // operators, and copies within the arena
  kOffload,  // device to host or disk
  kReload,   // host or disk to device
};
inline constexpr size_t kStreamCount = 3;
inline constexpr std::array<StreamId, kStreamCount> kAllStreams{
    StreamId::kCompute, StreamId::kOffload, StreamId::kReload};

constexpr std::string_view to_string(StreamId stream) {
  switch (stream) {
    case StreamId::kCompute: return "compute";
    case StreamId::kOffload: return "offload";
    case StreamId::kReload: return "reload";
  }
  return "?";
}

using Ticket = uint64_t;

// Back-pressure: with this much unfinished work on a stream, enqueueing more waits.
inline constexpr Ticket kMaxInFlight = 4096;

struct Event {
  StreamId stream = StreamId::kCompute;
  Ticket ticket = 0;
};

// The latest work in each stream that something depends on. A block's fence names the last work
// that touched it; merging two fences takes the later work of each stream.
class Fence {
 public:
  Fence() = default;
  Fence(Event event) { include(event); }  // NOLINT: an event is the simplest fence

  void include(Event event) {
    Ticket& ticket = last_[static_cast<size_t>(event.stream)];
    ticket = std::max(ticket, event.ticket);
  }
  void include(const Fence& other) {
    for (size_t i = 0; i < kStreamCount; ++i) last_[i] = std::max(last_[i], other.last_[i]);
  }
  // Drops the stream's work. REQUIRES: the rest of the fence implies it (it has been waited
  // for).
  void forget(StreamId stream) { last_[static_cast<size_t>(stream)] = 0; }
  Ticket operator[](StreamId stream) const { return last_[static_cast<size_t>(stream)]; }
  bool operator==(const Fence&) const = default;

 private:
  std::array<Ticket, kStreamCount> last_{};
};

}  // namespace tidemark
