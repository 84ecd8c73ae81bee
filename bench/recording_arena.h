// An arena that writes down what it is asked for, for a session of one's own:
//
//   MemoryTrace trace;
//   auto device = make_device("sim:a100-80gb");
//   auto arena = std::make_unique<RecordingArena>(*device, capacity, trace);
//   Session session(options, std::move(device), std::move(arena));
//
// Recorded is what the program and its policy need: blocks that come, and blocks that go.
// Requests that fail are not, nor where blocks lie; so a block that is slid to another place (a
// free with an allocate_at right after it) is one block all along.
//
// Threads: the issuing thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "bench/memory_trace.h"
#include "runtime/memory/arena.h"

namespace tidemark {

class RecordingArena final : public Arena {
 public:
  // Events are appended to `trace`, which must outlive the arena. REQUIRES: `trace` has none.
  RecordingArena(Device& device, Bytes capacity, MemoryTrace& trace);

  std::optional<Allocation> allocate(Bytes size, Category category) override;
  std::optional<Allocation> allocate_at(Offset offset, Bytes size, Category category) override;
  void free(const Block& block, Category category, const Fence& last_use) override;

 private:
  MemoryTrace& trace_;
  std::map<Offset, int64_t> live_;     // which block of the trace lies there
  std::optional<int64_t> just_freed_;  // by the last call; its event is the last one
};

}  // namespace tidemark
