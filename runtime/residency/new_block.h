// Private to residency/: a block just allocated from the arena, freed on destruction unless
// kept.
#pragma once

#include <utility>

#include "runtime/memory/arena.h"

namespace tidemark {

class NewBlock {
 public:
  NewBlock(Arena& arena, Category category, const Allocation& place)
      : arena_(&arena), category_(category), place_(place) {}
  NewBlock(NewBlock&& other) noexcept
      : arena_(std::exchange(other.arena_, nullptr)),
        category_(other.category_),
        place_(other.place_) {}
  NewBlock& operator=(NewBlock&&) = delete;
  ~NewBlock() {
    if (arena_) arena_->free(place_.block, category_, place_.fence);
  }

  Offset offset() const { return place_.block.offset; }
  // The last work on this space before the allocation.
  const Fence& fence() const { return place_.fence; }
  // The fence to free the block with: all unfinished work on the block.
  Fence& fence() { return place_.fence; }
  const Block& keep() {
    arena_ = nullptr;
    return place_.block;
  }

 private:
  Arena* arena_;
  Category category_;
  Allocation place_;
};

}  // namespace tidemark
