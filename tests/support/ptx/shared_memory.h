// The shared memory of a block, and who used each of its bytes last.
//
// Two accesses to the same bytes, one of them a write, must be ordered: made by one thread, or
// with a barrier of the block between them, or, within a warp, with a bar.warp.sync of both
// lanes between them. Shuffles and lockstep order nothing. Bytes are watched in granules of the
// narrowest access of the kernel.
//
// An asynchronous copy is a write of its thread, once when it starts and again when the thread
// has waited for it. In between nobody may use its bytes, the thread itself and those behind a
// barrier no more than others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {

class SharedMemory {
 public:
  SharedMemory(const Kernel& kernel, int threads);

  int64_t bytes() const { return bytes_; }
  std::byte* data() { return memory_.data(); }

  // Another block begins; the values that the last one wrote are gone.
  void begin_block();
  // All threads of the block have passed a barrier.
  void barrier() { ++epoch_; }
  // The lanes of a warp have passed bar.warp.sync.
  void warp_barrier(int warp, LaneMask lanes);

  struct Conflict {
    Check check;
    int other;  // the other thread; -1: none
  };
  // Notes an access and says what is wrong with it. REQUIRES: it lies within bounds.
  std::optional<Conflict> read(int64_t at, int bytes, int thread);
  std::optional<Conflict> write(int64_t at, int bytes, int thread);

  // The last writer of these bytes has only started to copy to them.
  void begin_copy(int64_t at, int64_t bytes);
  // `thread` has waited for that copy.
  void end_copy(int64_t at, int64_t bytes, int thread);

 private:
  struct Access {
    uint32_t epoch = 0;  // number of barriers before it; 0: none
    uint32_t clock = 0;  // number of the warp's own barriers before it
    int thread = -1;
  };
  // Two readers since the last barrier are enough to find every race with a later writer,
  // provided that a reader of another warp is not dropped for one of the same warp.
  struct Granule {
    Access writer, reader, other_reader;
    bool copying = false;  // the writer is, and has not waited for the end
  };
  struct WarpClock {
    uint32_t now = 0;
    std::array<std::array<uint32_t, kLanes>, kLanes> met{};  // last barrier of both lanes
  };

  std::span<Granule> granules(int64_t at, int64_t bytes);
  bool races(const Access& before, int thread) const;
  Access stamp(int thread) const;

  int64_t bytes_;
  int granule_shift_;  // bytes of a granule, as a power of two
  uint32_t epoch_ = 0;
  uint32_t block_epoch_ = 0;  // the block's first
  std::vector<std::byte> memory_;
  std::vector<Granule> granules_;
  std::vector<WarpClock> clocks_;
};

}  // namespace tidemark::ptx
