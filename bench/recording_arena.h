// An arena that records its requests, for a session of your own:
//
//   MemoryTrace trace;
//   auto device = make_device("sim:a100-80gb");
//   auto arena = std::make_unique<RecordingArena>(*device, capacity, trace);
//   Session session(options, std::move(device), std::move(arena));
//
// The trace records what the program and its policy need: allocated blocks and freed blocks. It
// omits failed requests and offsets. A block moved by compaction (a free directly followed by
// an allocate_at) therefore remains one block.
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
  // Appends events to `trace`, which must outlive the arena. REQUIRES: `trace` is empty.
  RecordingArena(Device& device, Bytes capacity, MemoryTrace& trace);

  std::optional<Allocation> allocate(Bytes size, Category category) override;
  std::optional<Allocation> allocate_at(Offset offset, Bytes size, Category category) override;
  void free(const Block& block, Category category, const Fence& last_use) override;

 private:
  MemoryTrace& trace_;
  std::map<Offset, int64_t> live_;     // the trace's block at each offset
  std::optional<int64_t> just_freed_;  // freed by the last call, whose event is the last one
};

}  // namespace tidemark
