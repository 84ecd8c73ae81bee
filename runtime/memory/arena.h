// One range of memory of exactly the budget, from which everything on the device comes:
// tensors, workspaces, library scratchpads and staging, parameters included.
//
// Threads: the issuing thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/device/device.h"
#include "runtime/memory/offset_allocator.h"

namespace tidemark {

// Bytes by category, with blocks rounded up as the arena rounds them.
class CategoryBytes {
 public:
  Bytes& operator[](Category c) { return bytes_[static_cast<size_t>(c)]; }
  Bytes operator[](Category c) const { return bytes_[static_cast<size_t>(c)]; }
  Bytes total() const;

 private:
  std::array<Bytes, kCategoryCount> bytes_{};
};

class Arena {
 public:
  // Throws OutOfMemory if the device cannot map `capacity`. Only whole multiples of kAlignment
  // are handed out.
  Arena(Device& device, MemoryKind kind, Bytes capacity);
  virtual ~Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Virtual for arenas that fail, record what they are asked for, or choose otherwise.
  //
  // None when no hole is large enough. Workspaces, gone by the next operator, are cut from the
  // upper end of a hole.
  virtual std::optional<Allocation> allocate(Bytes size, Category category);
  virtual std::optional<Allocation> allocate_at(Offset offset, Bytes size, Category category);
  // REQUIRES: `block` and `category` as they were handed out.
  virtual void free(const Block& block, Category category, const Fence& last_use);

  // A range that is planned: taken as a whole, and from then on places within it are given
  // without looking, as whoever planned it knows that they are unused by then. False if the
  // range is not one hole.
  bool open_plan(const Block& range);
  bool plan_is_open() const { return plan_.has_value(); }
  // The last work on the open plan's range: from before it was opened, and on what was freed in
  // it since. Who writes to a place in it waits for that.
  const Fence& plan_fence() const { return plan_fence_; }
  // REQUIRES: a plan is open, and the block lies within it.
  Block place(Offset offset, Bytes size, Category category);
  bool in_plan(const Block& block) const {
    return plan_ && block.offset >= plan_->offset && block.end() <= plan_->end();
  }
  // The range is as any other again: `live` are the blocks in it that are in use.
  void close_plan(const std::vector<Block>& live);
  // Handed out: of a plan, what is in use of it.
  Bytes used() const {
    return plan_ ? offsets_.used() - plan_->size + plan_used_ : offsets_.used();
  }

  void hold(const Block& unused, const Fence& last_use) { offsets_.hold(unused, last_use); }

  // Null on a device without data.
  std::byte* address(Offset offset) const;
  const OffsetAllocator& offsets() const { return offsets_; }
  const CategoryBytes& live() const { return live_; }

  // The most that was live at once since reset_peak(), and what it was made of.
  const CategoryBytes& peak_live() const { return peak_live_; }
  // Highest end offset since reset_peak(): what the arena had to be at least.
  Bytes peak_reserved() const { return offsets_.high_water() - Offset(0); }
  void reset_peak();

 private:
  void count(const Block& block, Category category);

  std::unique_ptr<MemoryRegion> region_;
  OffsetAllocator offsets_;
  std::optional<Block> plan_;
  Bytes plan_used_{0};
  Fence plan_fence_;
  CategoryBytes live_;
  CategoryBytes peak_live_;
  Bytes peak_used_{0};  // the sum of peak_live_
};

}  // namespace tidemark
