// One range of memory of exactly the budget, from which all device memory is allocated: tensors
// including parameters, workspaces, library scratchpads and staging.
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

// Bytes by category, rounded as in the arena.
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
  // Throws OutOfMemory if the device cannot map `capacity`. Allocates only multiples of
  // kAlignment.
  Arena(Device& device, MemoryKind kind, Bytes capacity);
  virtual ~Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Virtual for arenas that fail, record requests, or choose differently.
  //
  // None if no hole is large enough. Workspaces, which are freed by the next operator, are cut
  // from the upper end of a hole.
  virtual std::optional<Allocation> allocate(Bytes size, Category category);
  virtual std::optional<Allocation> allocate_at(Offset offset, Bytes size, Category category);
  // REQUIRES: `block` and `category` as allocated.
  virtual void free(const Block& block, Category category, const Fence& last_use);

  // The block stays in use, for something of another category.
  void recategorise(const Block& block, Category from, Category to);

  // Opens a plan: takes `range` as a whole. Blocks within it are then placed without checks,
  // because the planner ensures that their space is unused. False if the range is not one hole.
  bool open_plan(const Block& range);
  bool plan_is_open() const { return plan_.has_value(); }
  // The last work on the open plan's range: from before it was opened, and on blocks freed in
  // it since. Wait for it before writing to a placed block.
  const Fence& plan_fence() const { return plan_fence_; }
  // REQUIRES: a plan is open, and the block lies within it.
  Block place(Offset offset, Bytes size, Category category);
  bool in_plan(const Block& block) const {
    return plan_ && block.offset >= plan_->offset && block.end() <= plan_->end();
  }
  // Closes the plan; `live` are the blocks of the range still in use.
  void close_plan(const std::vector<Block>& live);
  // Allocated bytes; in an open plan, only blocks in use count.
  Bytes used() const {
    return plan_ ? offsets_.used() - plan_->size + plan_used_ : offsets_.used();
  }

  void hold(const Block& unused, const Fence& last_use) { offsets_.hold(unused, last_use); }

  // Null on a device without data.
  std::byte* address(Offset offset) const;
  const OffsetAllocator& offsets() const { return offsets_; }
  const CategoryBytes& live() const { return live_; }

  // Live bytes by category when most were live since reset_peak().
  const CategoryBytes& peak_live() const { return peak_live_; }
  // Highest end offset since reset_peak(): the minimum size of the arena.
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
