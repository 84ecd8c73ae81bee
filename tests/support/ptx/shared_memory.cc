#include "tests/support/ptx/shared_memory.h"

#include <algorithm>
#include <bit>

#include "tests/support/ptx/step.h"

namespace tidemark::ptx {

SharedMemory::SharedMemory(const Kernel& kernel, int threads)
    : bytes_(kernel.shared_bytes),
      granule_shift_(std::countr_zero(static_cast<unsigned>(kernel.shared_granule))),
      memory_(static_cast<size_t>(bytes_)),
      granules_(static_cast<size_t>((bytes_ >> granule_shift_) + 1)),
      clocks_(static_cast<size_t>((threads + kLanes - 1) / kLanes)) {}

void SharedMemory::begin_block() {
  block_epoch_ = ++epoch_;
  // Not zero: a kernel must not count on what it finds.
  std::fill(memory_.begin(), memory_.end(), std::byte{0xA5});
}

void SharedMemory::warp_barrier(int warp, LaneMask lanes) {
  WarpClock& clock = clocks_[static_cast<size_t>(warp)];
  ++clock.now;
  for_lanes(lanes, [&](int a) {
    for_lanes(lanes, [&](int b) {
      clock.met[static_cast<size_t>(a)][static_cast<size_t>(b)] = clock.now;
    });
  });
}

SharedMemory::Access SharedMemory::stamp(int thread) const {
  return {epoch_, clocks_[static_cast<size_t>(thread / kLanes)].now, thread};
}

bool SharedMemory::races(const Access& before, int thread) const {
  if (before.epoch != epoch_ || before.thread == thread) return false;
  const int warp = thread / kLanes;
  if (before.thread / kLanes != warp) return true;
  const auto& met = clocks_[static_cast<size_t>(warp)].met;
  return met[static_cast<size_t>(before.thread % kLanes)]
            [static_cast<size_t>(thread % kLanes)] <= before.clock;
}

std::span<SharedMemory::Granule> SharedMemory::granules(int64_t at, int64_t bytes) {
  const auto first = static_cast<size_t>(at >> granule_shift_);
  const auto last = static_cast<size_t>((at + bytes - 1) >> granule_shift_);
  return std::span(granules_).subspan(first, last - first + 1);
}

std::optional<SharedMemory::Conflict> SharedMemory::read(int64_t at, int bytes, int thread) {
  const Access mine = stamp(thread);
  for (Granule& granule : granules(at, bytes)) {
    if (granule.writer.epoch < block_epoch_) return Conflict{Check::kUnwrittenShared, -1};
    if (races(granule.writer, thread)) return Conflict{Check::kRace, granule.writer.thread};
    if (granule.copying) return Conflict{Check::kCopy, granule.writer.thread};
    Access& last = granule.reader;
    if (last.epoch == epoch_ && last.thread != thread) {
      const Access& other = granule.other_reader;
      const bool keep = other.epoch == epoch_ && other.thread / kLanes != thread / kLanes;
      if (!keep) granule.other_reader = last;
    }
    last = mine;
  }
  return std::nullopt;
}

std::optional<SharedMemory::Conflict> SharedMemory::write(int64_t at, int bytes, int thread) {
  const Access mine = stamp(thread);
  for (Granule& granule : granules(at, bytes)) {
    for (const Access* before : {&granule.writer, &granule.reader, &granule.other_reader}) {
      if (races(*before, thread)) return Conflict{Check::kRace, before->thread};
    }
    if (granule.copying) return Conflict{Check::kCopy, granule.writer.thread};
    granule.writer = mine;
  }
  return std::nullopt;
}

void SharedMemory::begin_copy(int64_t at, int64_t bytes) {
  for (Granule& granule : granules(at, bytes)) granule.copying = true;
}

// No race to look for: whoever used the bytes since the copy's start has been found.
void SharedMemory::end_copy(int64_t at, int64_t bytes, int thread) {
  const Access mine = stamp(thread);
  for (Granule& granule : granules(at, bytes)) {
    granule.writer = mine;
    granule.copying = false;
  }
}

}  // namespace tidemark::ptx
