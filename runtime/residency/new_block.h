// Private to residency/: a block that the arena has just handed out, given back unless it is
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
  // The last work on the space, from before it was handed out.
  const Fence& fence() const { return place_.fence; }
  // What it is given back with: all work on it that is not done.
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
