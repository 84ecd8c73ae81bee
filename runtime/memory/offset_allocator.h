// Allocates offsets in a range of fixed size; does not touch memory.
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
// small it is. The layout therefore does not depend on the capacity: calls that reach the high
// water mark H in a large range get the same offsets in a range of H, and none of them fails
// there. This makes "a budget at or above the unmanaged peak releases nothing" exact.
//
// Stream-ordered reuse (RMM's idea): a block is freed while work on it may still run. The hole
// carries that work's fence, and the next user of the space makes its stream wait; the host
// never waits. A merged hole keeps the latest work on each of its parts. If there are many
// parts, the oldest work counts for the whole hole, since it is most likely done.
//
// Threads: one.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/device/stream.h"
#include "runtime/memory/address_map.h"

namespace tidemark {

// [offset, offset + size)
struct Block {
  Offset offset;
  Bytes size{0};
  Offset end() const { return offset + size; }
  bool operator==(const Block&) const = default;
};

// An allocated block, and the work to wait for before writing to it.
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
  // as workspaces, which then do not separate long-lived ones; the tail is always cut from
  // below.
  std::optional<Allocation> allocate(Bytes size, bool from_top = false);
  // Allocates exactly at `offset`, `size` rounded up. None unless the block lies within one
  // hole. REQUIRES: `offset` is a multiple of kAlignment.
  std::optional<Allocation> allocate_at(Offset offset, Bytes size);
  // REQUIRES: `block` as allocated (a part of it is an error).
  void free(const Block& block, const Fence& last_use);
  // Makes later users of any part of `unused` wait for `last_use` too: for work that reads a
  // block after it was freed, such as a move of its contents. No-op for an empty range.
  // REQUIRES: `unused` lies within one hole.
  void hold(const Block& unused, const Fence& last_use);

  bool fits(Bytes size) const { return size <= largest_hole() && largest_hole() > Bytes(0); }
  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }
  Bytes unused() const { return capacity_ - used_; }
  Bytes largest_hole() const;
  // Whether all blocks lie together at the lower end.
  bool packed() const;
  // Highest end of any block since the last reset.
  Offset high_water() const { return high_water_; }
  // Resets the high water mark to the highest end of the current blocks.
  void reset_high_water();
  // Calls visit(Block) for each hole, by offset. `visit` may not change the allocator.
  template <class Visit>
  void for_each_hole(const Visit& visit) const {
    for (const auto& hole : holes_) visit(Block{hole.offset, hole.value.size});
  }
  size_t hole_count() const { return holes_.size(); }
  std::vector<Block> holes() const;   // by offset
  std::vector<Block> blocks() const;  // allocated, by offset

 private:
  // The last work on a part of a hole.
  struct Part {
    Block of;
    Fence fence;
  };
  // The last work on a hole.
  struct LastWork {
    Fence fence;              // on the whole hole
    std::vector<Part> parts;  // few; the latest work
  };
  struct Hole {
    Bytes size{0};
    LastWork* work = nullptr;  // one of works_
  };
  using Place = AddressMap<Hole>::Cursor;
  struct Rank {
    Bytes size{0};
    Offset offset;
    bool operator<(const Rank& other) const {
      return size < other.size || (size == other.size && offset < other.offset);
    }
  };

  bool is_tail(Offset offset, Bytes size) const { return offset + size == range_end(); }
  Offset range_end() const { return Offset(0) + capacity_; }
  void add_rank(Offset offset, Bytes size);
  void remove_rank(Offset offset, Bytes size);
  LastWork* new_work();
  void forget(LastWork* work);
  static void add_part(LastWork& hole, const Part& part);
  static void merge(LastWork& hole, const LastWork& other);
  // holes_.end() if none fits.
  Place best_hole(Bytes size) const;
  Allocation take(const Place& hole, Offset offset, Bytes size);

  Bytes capacity_;
  Bytes used_{0};
  Offset high_water_;
  // Blocks and holes cover [0, capacity); two holes never touch.
  AddressMap<Hole> holes_;
  AddressMap<Bytes> blocks_;    // allocated blocks' sizes
  std::deque<LastWork> works_;  // of holes, or unused
  std::vector<LastWork*> unused_works_;
  LastWork scratch_;
  // Holes except the tail, in eight classes per power of two, each sorted by size and offset.
  // Classes are short, so a sorted vector is faster than a tree.
  std::vector<std::vector<Rank>> ranks_;
  std::vector<uint64_t> occupied_;  // a bit per class
};

}  // namespace tidemark
