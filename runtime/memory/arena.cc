#include "runtime/memory/arena.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {

Bytes CategoryBytes::total() const {
  Bytes sum{0};
  for (const Bytes bytes : bytes_) sum += bytes;
  return sum;
}

namespace {

std::unique_ptr<MemoryRegion> map_region(Device& device, MemoryKind kind, Bytes capacity) {
  if (capacity == Bytes(0)) return nullptr;
  try {
    return device.map(kind, capacity);
  } catch (const DeviceError& error) {
    throw OutOfMemory(error.what(), capacity, capacity);
  }
}

}  // namespace

Arena::Arena(Device& device, MemoryKind kind, Bytes capacity)
    : region_(map_region(device, kind, capacity)), offsets_(capacity) {}

std::optional<Allocation> Arena::allocate(Bytes size, Category category) {
  const auto allocation = offsets_.allocate(size, category == Category::kWorkspace);
  if (allocation) count(allocation->block, category);
  return allocation;
}

std::optional<Allocation> Arena::allocate_at(Offset offset, Bytes size, Category category) {
  const auto allocation = offsets_.allocate_at(offset, size);
  if (allocation) count(allocation->block, category);
  return allocation;
}

void Arena::count(const Block& block, Category category) {
  live_[category] += block.size;
  if (used() > peak_used_) {
    peak_used_ = used();
    peak_live_ = live_;
  }
}

void Arena::free(const Block& block, Category category, const Fence& last_use) {
  TIDEMARK_CHECK(live_[category] >= block.size,
                 "more " + std::string(to_string(category)) + " freed than allocated");
  if (in_plan(block)) {
    plan_used_ -= block.size;
    plan_fence_.include(last_use);
  } else {
    offsets_.free(block, last_use);
  }
  live_[category] -= block.size;
}

void Arena::recategorise(const Block& block, Category from, Category to) {
  TIDEMARK_CHECK(live_[from] >= block.size, "a block is of the category it was allocated for");
  live_[from] -= block.size;
  live_[to] += block.size;
}

bool Arena::open_plan(const Block& range) {
  TIDEMARK_CHECK(!plan_, "one plan at a time");
  const auto taken = offsets_.allocate_at(range.offset, range.size);
  if (!taken) return false;
  plan_ = taken->block;
  plan_used_ = Bytes(0);
  plan_fence_ = taken->fence;
  return true;
}

Block Arena::place(Offset offset, Bytes size, Category category) {
  const Block block{offset, std::max(align_up(size), kAlignment)};
  TIDEMARK_CHECK(in_plan(block), "a planned place lies within the plan");
  plan_used_ += block.size;
  count(block, category);
  return block;
}

void Arena::close_plan(const std::vector<Block>& live) {
  TIDEMARK_CHECK(plan_.has_value(), "there is a plan to close");
  offsets_.free(*std::exchange(plan_, std::nullopt), plan_fence_);
  for (const Block& block : live) {
    const auto kept = offsets_.allocate_at(block.offset, block.size);
    TIDEMARK_CHECK(kept.has_value(), "planned blocks in use do not overlap");
  }
}

std::byte* Arena::address(Offset offset) const {
  TIDEMARK_CHECK(offset >= Offset(0) && offset <= Offset(0) + offsets_.capacity(),
                 "offset " + std::to_string(offset.value()));
  std::byte* const data = region_ ? region_->data() : nullptr;
  return data ? data + offset.value() : nullptr;
}

void Arena::reset_peak() {
  offsets_.reset_high_water();
  peak_used_ = used();
  peak_live_ = live_;
}

}  // namespace tidemark
