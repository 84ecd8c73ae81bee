// Hands out offsets in a range of fixed size; knows nothing of memory.
//
// Best fit with immediate coalescing, offsets and sizes multiples of kAlignment. The choice
// depends only on the order of calls, never on what has completed, so a program's layout is
// reproducible.
//
//   0        512       2048       4096                    capacity
//   | block  |  hole   |  block   |         tail           |
//            ^ carries a Fence: the last work that may still touch it
//
// The tail, the hole that ends at `capacity`, is used only when no other hole fits, however
// small it is. So the layout does not depend on the capacity: calls that reach the high water
// mark H in a large range get the very same offsets in a range of H, and none of them fails
// there. That is what makes "a budget at or above the unmanaged peak releases nothing" exact.
//
// Stream-ordered reuse (RMM's idea): a block is freed while work on it may still run; the hole
// carries that work's fence, and whoever gets the space makes its stream wait. The host never
// does. Merging holes merges what compute has done with them, which costs those nothing that
// run after it; copies, which may take long, are kept with the part of the hole that they are
// of.
//
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/device/stream.h"

namespace tidemark {

// [offset, offset + size)
struct Block {
  Offset offset;
  Bytes size{0};
  Offset end() const { return offset + size; }
  bool operator==(const Block&) const = default;
};

// A block handed out, and what has to be done before it may be written.
struct Allocation {
  Block block;
  Fence fence;
};

class OffsetAllocator {
 public:
  explicit OffsetAllocator(Bytes capacity);  // rounded down to kAlignment; 0 is allowed
  OffsetAllocator(const OffsetAllocator&) = delete;
  OffsetAllocator& operator=(const OffsetAllocator&) = delete;

  // The smallest hole that holds `size` (rounded up; at least kAlignment), ties to the lowest
  // offset; else the tail. `from_top` takes the hole's upper end, for short-lived blocks such
  // as workspaces, which then do not part the long-lived ones; the tail is always cut from
  // below.
  std::optional<Allocation> allocate(Bytes size, bool from_top = false);
  // That very place, `size` rounded up; none unless it lies within one hole.
  // REQUIRES: `offset` is a multiple of kAlignment.
  std::optional<Allocation> allocate_at(Offset offset, Bytes size);
  // REQUIRES: `block` as it was handed out (a part of it is an error).
  void free(const Block& block, const Fence& last_use);
  // Whoever gets any part of `unused` waits for `last_use` too: for work that reads a block
  // after it was freed, as a move of its contents does. Nothing for an empty range.
  // REQUIRES: `unused` lies within one hole.
  void hold(const Block& unused, const Fence& last_use);

  bool fits(Bytes size) const { return size <= largest_hole() && largest_hole() > Bytes(0); }
  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }
  Bytes unused() const { return capacity_ - used_; }
  Bytes largest_hole() const;
  // Do all blocks lie together at the lower end?
  bool packed() const;
  // Highest end of any block since the last reset.
  Offset high_water() const { return high_water_; }
  // To the highest end of the blocks handed out now.
  void reset_high_water();
  std::vector<Block> holes() const;   // by offset
  std::vector<Block> blocks() const;  // handed out, by offset

 private:
  // Blocks and holes alternate with blocks, never with holes, and cover [0, capacity).
  // Copies of a part of a hole that may still run.
  struct Copies {
    Block of;
    Fence fence;
  };
  struct Segment {
    Bytes size{0};
    bool is_hole = false;
    Fence fence;                                    // of a hole: all of it
    std::unique_ptr<std::vector<Copies>> copies{};  // null: none, as mostly
  };
  using Segments = std::map<Offset, Segment>;
  struct Rank {
    Bytes size{0};
    Offset offset;
    Segments::iterator hole;
    bool operator<(const Rank& other) const {
      return size < other.size || (size == other.size && offset < other.offset);
    }
  };

  bool is_tail(Segments::iterator hole) const;
  void insert(Segments::iterator hole);
  void remove(Segments::iterator hole);
  static void add_fence(Segment& hole, const Block& part, const Fence& last_use);
  static void add_copies(Segment& hole, const Copies& copies);
  static void merge_fences(Segment& hole, Segment& other);
  Segments::iterator best_hole(Bytes size);
  Allocation take(Segments::iterator hole, Offset offset, Bytes size);

  Bytes capacity_;
  Bytes used_{0};
  Offset high_water_;
  Segments segments_;
  // Holes without the tail, in classes of eight per power of two, each sorted by size and
  // offset. A class is short, so a sorted vector is faster than a tree.
  std::vector<std::vector<Rank>> ranks_;
  std::vector<uint64_t> occupied_;  // a bit per class
};

}  // namespace tidemark
