#include "runtime/memory/offset_allocator.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr size_t kWordBits = 64;

// A hole tracks at most this many parts with fences of their own.
constexpr size_t kMaxParts = 32;

Ticket latest_copy(const Fence& fence) {
  return std::max(fence[StreamId::kOffload], fence[StreamId::kReload]);
}

// Whether work `a` has most likely finished before work `b`. Copies may take long, so they
// decide.
bool is_older(const Fence& a, const Fence& b) {
  const Ticket copy_a = latest_copy(a), copy_b = latest_copy(b);
  return copy_a != copy_b ? copy_a < copy_b : a[StreamId::kCompute] < b[StreamId::kCompute];
}

std::string describe(const Block& block) {
  return "[" + std::to_string(block.offset.value()) + ", " +
         std::to_string(block.end().value()) + ")";
}

// The size class, which never decreases with the size. In units of kAlignment, sizes 1 to 7
// have a class each; from there on every power of two has eight classes.
size_t class_of(Bytes size) {
  const uint64_t units = static_cast<uint64_t>(size.count() / kAlignment.count());
  if (units < 8) return static_cast<size_t>(units);
  const auto exponent = static_cast<size_t>(std::bit_width(units)) - 1;
  return 8 * (exponent - 2) + static_cast<size_t>((units >> (exponent - 3)) & 7);
}

}  // namespace

OffsetAllocator::OffsetAllocator(Bytes capacity) : capacity_(align_down(capacity)) {
  TIDEMARK_CHECK(capacity >= Bytes(0), "capacity " + std::to_string(capacity.count()));
  ranks_.resize(class_of(capacity_) + 1);
  occupied_.resize(ranks_.size() / kWordBits + 1);
  if (capacity_ > Bytes(0)) holes_.insert(Offset(0), {capacity_, new_work()});
}

void OffsetAllocator::add_rank(Offset offset, Bytes size) {
  if (is_tail(offset, size)) return;
  const Rank rank{size, offset};
  const size_t c = class_of(size);
  ranks_[c].insert(std::lower_bound(ranks_[c].begin(), ranks_[c].end(), rank), rank);
  occupied_[c / kWordBits] |= uint64_t{1} << c % kWordBits;
}

void OffsetAllocator::remove_rank(Offset offset, Bytes size) {
  if (is_tail(offset, size)) return;
  const Rank rank{size, offset};
  const size_t c = class_of(size);
  ranks_[c].erase(std::lower_bound(ranks_[c].begin(), ranks_[c].end(), rank));
  if (ranks_[c].empty()) occupied_[c / kWordBits] &= ~(uint64_t{1} << c % kWordBits);
}

OffsetAllocator::LastWork* OffsetAllocator::new_work() {
  if (unused_works_.empty()) return &works_.emplace_back();
  LastWork* const work = unused_works_.back();
  unused_works_.pop_back();
  return work;
}

void OffsetAllocator::forget(LastWork* work) {
  work->fence = {};
  work->parts.clear();  // keeps its capacity for the next user
  unused_works_.push_back(work);
}

OffsetAllocator::Place OffsetAllocator::best_hole(Bytes size) const {
  size_t c = class_of(size);
  const Rank wanted{size, Offset(0)};
  if (const auto best = std::lower_bound(ranks_[c].begin(), ranks_[c].end(), wanted);
      best != ranks_[c].end()) {
    return holes_.find(best->offset);
  }
  ++c;
  for (size_t word = c / kWordBits; word < occupied_.size(); ++word) {
    uint64_t bits = occupied_[word];
    if (word == c / kWordBits) bits &= ~uint64_t{0} << c % kWordBits;
    if (bits == 0) continue;
    const size_t least = word * kWordBits + static_cast<size_t>(std::countr_zero(bits));
    return holes_.find(ranks_[least].front().offset);
  }
  if (holes_.empty()) return holes_.end();
  const auto& last = holes_.back();
  const bool fits = is_tail(last.offset, last.value.size) && last.value.size >= size;
  return fits ? --holes_.end() : holes_.end();
}

std::optional<Allocation> OffsetAllocator::allocate(Bytes size, bool from_top) {
  TIDEMARK_CHECK(size >= Bytes(0), "size " + std::to_string(size.count()));
  if (size > capacity_ || capacity_ == Bytes(0)) return std::nullopt;
  size = std::max(align_up(size), kAlignment);
  const Place place = best_hole(size);
  if (place == holes_.end()) return std::nullopt;
  const auto& [offset, hole] = *place;
  const bool upper = from_top && !is_tail(offset, hole.size);
  return take(place, upper ? offset + (hole.size - size) : offset, size);
}

std::optional<Allocation> OffsetAllocator::allocate_at(Offset offset, Bytes size) {
  TIDEMARK_CHECK(size >= Bytes(0), "size " + std::to_string(size.count()));
  TIDEMARK_CHECK(offset >= Offset(0) && offset.value() % kAlignment.count() == 0,
                 "offset " + std::to_string(offset.value()));
  if (size > capacity_ || capacity_ == Bytes(0)) return std::nullopt;
  size = std::max(align_up(size), kAlignment);
  const Place hole = holes_.last_up_to(offset);
  if (hole == holes_.end()) return std::nullopt;
  if (offset > hole->offset + hole->value.size - size) return std::nullopt;
  return take(hole, offset, size);
}

void OffsetAllocator::add_part(LastWork& hole, const Part& part) {
  if (hole.parts.size() == kMaxParts) {
    const auto oldest = std::min_element(
        hole.parts.begin(), hole.parts.end(),
        [](const Part& a, const Part& b) { return is_older(a.fence, b.fence); });
    hole.fence.include(oldest->fence);
    *oldest = part;
  } else {
    hole.parts.push_back(part);
  }
}

void OffsetAllocator::merge(LastWork& hole, const LastWork& other) {
  hole.fence.include(other.fence);
  for (const Part& part : other.parts) add_part(hole, part);
}

Allocation OffsetAllocator::take(const Place& hole, Offset offset, Bytes size) {
  const Block block{offset, size};
  const Offset begin = hole->offset;
  const Offset end = begin + hole->value.size;
  LastWork* const work = hole->value.work;
  const Fence all = work->fence;
  std::vector<Part>& parts = scratch_.parts;
  parts.clear();
  parts.swap(work->parts);

  remove_rank(begin, end - begin);
  LastWork* lower = nullptr;
  LastWork* upper = nullptr;
  if (begin < offset) {
    lower = work;
    holes_.value(hole).size = offset - begin;
    add_rank(begin, offset - begin);
  }
  if (block.end() < end) {
    upper = lower ? new_work() : work;
    upper->fence = all;
    if (lower) {
      holes_.insert(block.end(), {end - block.end(), upper});
    } else {
      holes_.move(hole, block.end());
      holes_.value(hole).size = end - block.end();
    }
    add_rank(block.end(), end - block.end());
  }
  if (!lower && !upper) {
    holes_.erase(hole);
    forget(work);
  }
  blocks_.insert(offset, size);
  used_ += size;
  high_water_ = std::max(high_water_, block.end());
  Fence fence = all;
  for (const Part& part : parts) {
    if (part.of.offset < block.end() && block.offset < part.of.end()) fence.include(part.fence);
    if (lower && part.of.offset < offset) lower->parts.push_back(part);
    if (upper && part.of.end() > block.end()) upper->parts.push_back(part);
  }
  return {block, fence};
}

void OffsetAllocator::free(const Block& block, const Fence& last_use) {
  const auto here = blocks_.find(block.offset);
  TIDEMARK_CHECK(here != blocks_.end() && here->value == block.size,
                 describe(block) + " is not an allocated block");
  blocks_.erase(here);
  used_ -= block.size;
  LastWork* work = new_work();
  add_part(*work, {block, last_use});

  Block hole = block;
  Place next = holes_.first_from(block.offset);
  const bool joins_next = next != holes_.end() && next->offset == block.end();
  if (joins_next) {
    remove_rank(next->offset, next->value.size);
    hole.size += next->value.size;
    merge(*work, *next->value.work);
  }
  Place before = next;
  bool joins_before = false;
  if (next != holes_.begin()) {
    --before;
    joins_before = before->offset + before->value.size == block.offset;
  }
  if (joins_before) {
    remove_rank(before->offset, before->value.size);
    hole = {before->offset, before->value.size + hole.size};
    merge(*before->value.work, *work);
    forget(std::exchange(work, before->value.work));
  }
  // One entry remains for the joined hole.
  if (joins_next) {
    forget(next->value.work);
    if (joins_before) {
      holes_.erase(next);
    } else {
      holes_.move(next, hole.offset);
      holes_.value(next) = {hole.size, work};
    }
  }
  if (joins_before) {
    holes_.value(before).size = hole.size;
  } else if (!joins_next) {
    holes_.insert(hole.offset, {hole.size, work});
  }
  add_rank(hole.offset, hole.size);
}

Bytes OffsetAllocator::largest_hole() const {
  if (holes_.empty()) return Bytes(0);
  const auto& [offset, last] = holes_.back();
  Bytes largest = is_tail(offset, last.size) ? last.size : Bytes(0);
  for (size_t word = occupied_.size(); word-- > 0;) {
    if (occupied_[word] == 0) continue;
    const size_t c =
        word * kWordBits + static_cast<size_t>(std::bit_width(occupied_[word])) - 1;
    return std::max(largest, ranks_[c].back().size);
  }
  return largest;
}

bool OffsetAllocator::packed() const {
  return blocks_.empty() || blocks_.back().offset + blocks_.back().value == Offset(0) + used_;
}

void OffsetAllocator::reset_high_water() {
  high_water_ = blocks_.empty() ? Offset(0) : blocks_.back().offset + blocks_.back().value;
}

std::vector<Block> OffsetAllocator::holes() const {
  std::vector<Block> result;
  for_each_hole([&](const Block& hole) { result.push_back(hole); });
  return result;
}

std::vector<Block> OffsetAllocator::blocks() const {
  std::vector<Block> result;
  for (const auto& [offset, size] : blocks_) result.push_back({offset, size});
  return result;
}

void OffsetAllocator::hold(const Block& unused, const Fence& last_use) {
  if (unused.size == Bytes(0)) return;
  const Place hole = holes_.last_up_to(unused.offset);
  TIDEMARK_CHECK(hole != holes_.end() && unused.end() <= hole->offset + hole->value.size,
                 "only unused space is held");
  add_part(*hole->value.work, {unused, last_use});
}

}  // namespace tidemark
