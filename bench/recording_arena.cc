#include "bench/recording_arena.h"

namespace tidemark {

RecordingArena::RecordingArena(Device& device, Bytes capacity, MemoryTrace& trace)
    : Arena(device, MemoryKind::kDevice, capacity), trace_(trace) {}

std::optional<Allocation> RecordingArena::allocate(Bytes size, Category category) {
  just_freed_.reset();
  const auto allocation = Arena::allocate(size, category);
  if (allocation) {
    live_[allocation->block.offset] = trace_.blocks;
    trace_.events.push_back({TraceEvent::kAllocate, category, trace_.blocks++, size});
  }
  return allocation;
}

std::optional<Allocation> RecordingArena::allocate_at(Offset offset, Bytes size,
                                                      Category category) {
  const auto allocation = Arena::allocate_at(offset, size, category);
  if (!allocation) return allocation;
  if (just_freed_) {
    live_[offset] = *just_freed_;
    trace_.events.pop_back();
  } else {
    live_[offset] = trace_.blocks;
    trace_.events.push_back({TraceEvent::kAllocate, category, trace_.blocks++, size});
  }
  just_freed_.reset();
  return allocation;
}

void RecordingArena::free(const Block& block, Category category, const Fence& last_use) {
  Arena::free(block, category, last_use);
  const auto here = live_.find(block.offset);
  just_freed_ = here->second;
  live_.erase(here);
  trace_.events.push_back({.kind = TraceEvent::kFree, .block = *just_freed_});
}

}  // namespace tidemark
