// A model of PyTorch's CUDA caching allocator: which segments it takes from the device, and
// where blocks lie in them. Holds no memory itself. Source: PyTorch's notes on CUDA memory
// management and c10/cuda/CUDACachingAllocator.cpp, 2.15.
//
//   segment 0, small, 2 MiB       segment 1, large, 20 MiB
//   | 512 B | 3 KiB | free      | 6 MiB    | 4 MiB | free           |
//   0                         2 MiB                               22 MiB    addresses
//
// - Requests are rounded up to 512 bytes.
// - Up to 1 MiB, they are served by the small pool, which has segments of 2 MiB; larger ones by
//   the large pool: segments of 20 MiB for less than 10 MiB, else the request rounded up to 2
//   MiB.
// - The smallest free block of the pool and stream that is large enough is taken, the lowest of
//   equal ones. If there is none, a segment is.
// - What is left of a block becomes a free block if it has 512 bytes (small pool) or more than
//   1 MiB (large pool); else it belongs to the block that was asked for.
// - A freed block merges with its free neighbours in the segment. It returns to its own stream.
// - Segments are kept: PyTorch gives them back only where it would run out of memory.
//
// A block that other streams use too (record_stream) returns to its own stream when they are
// done, so free it then. Not modelled: expandable segments, roundup_power2_divisions, garbage
// collection, pools of CUDA graphs.
//
// Threads: one at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include "runtime/core/units.h"

namespace tidemark::planner {

class CachingAllocator {
 public:
  // `max_split_size` is PyTorch's option of that name, above 20 MiB: blocks of that size or
  // more are not split, and serve only requests of that size or more, 20 MiB smaller at most.
  explicit CachingAllocator(Bytes max_split_size = Bytes(std::numeric_limits<int64_t>::max()))
      : max_split_size_(max_split_size) {}

  // The address of a block of at least `size`; segments lie side by side, in the order in which
  // they were taken. REQUIRES: size > 0. O(log blocks).
  Offset allocate(Bytes size, int32_t stream = 0);

  // REQUIRES: allocate() returned `address`, and it has not been freed since.
  void free(Offset address);

  Bytes reserved() const { return reserved_; }    // all segments: torch.cuda.memory_reserved()
  Bytes allocated() const { return allocated_; }  // used blocks: torch.cuda.memory_allocated()
  int64_t segment_count() const { return segments_; }

 private:
  struct Block {
    Bytes size;
    int64_t segment;
    int32_t stream;
    bool large;  // its pool
    bool used;
  };
  struct FreeBlock {
    bool large;
    int32_t stream;
    Bytes size;
    Offset address;
    auto operator<=>(const FreeBlock&) const = default;
  };
  using Blocks = std::map<Offset, Block>;

  static FreeBlock free_block(const Blocks::value_type& entry);
  Blocks::iterator take_free_block(bool large, int32_t stream, Bytes size);
  Blocks::iterator take_segment(bool large, int32_t stream, Bytes size);
  void merge_with_next(Blocks::iterator lower);  // if both are free and of one segment

  const Bytes max_split_size_;
  Bytes reserved_, allocated_;
  int64_t segments_ = 0;
  Blocks blocks_;             // all bytes of all segments
  std::set<FreeBlock> free_;  // those of blocks_ that are not used
};

}  // namespace tidemark::planner
