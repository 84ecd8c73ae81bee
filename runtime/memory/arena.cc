#include "runtime/memory/arena.h"

#include <string>

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
  if (offsets_.used() > peak_used_) {
    peak_used_ = offsets_.used();
    peak_live_ = live_;
  }
}

void Arena::free(const Block& block, Category category, const Fence& last_use) {
  TIDEMARK_CHECK(live_[category] >= block.size,
                 "more " + std::string(to_string(category)) + " freed than allocated");
  offsets_.free(block, last_use);
  live_[category] -= block.size;
}

std::byte* Arena::address(Offset offset) const {
  TIDEMARK_CHECK(offset >= Offset(0) && offset <= Offset(0) + offsets_.capacity(),
                 "offset " + std::to_string(offset.value()));
  std::byte* const data = region_ ? region_->data() : nullptr;
  return data ? data + offset.value() : nullptr;
}

void Arena::reset_peak() {
  offsets_.reset_high_water();
  peak_used_ = offsets_.used();
  peak_live_ = live_;
}

}  // namespace tidemark
