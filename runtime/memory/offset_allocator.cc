#include "runtime/memory/offset_allocator.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr size_t kWordBits = 64;

// Of copies, so many are told apart in a hole; the oldest, which have most likely been done,
// are then of all of it.
constexpr size_t kMostCopies = 32;

Ticket latest_copy(const Fence& fence) {
  return std::max(fence[StreamId::kOffload], fence[StreamId::kReload]);
}

std::string describe(const Block& block) {
  return "[" + std::to_string(block.offset.value()) + ", " +
         std::to_string(block.end().value()) + ")";
}

// Which class a size belongs to; never decreasing in size. In units of kAlignment: 1 to 7 have
// a class each, and from there on every power of two has eight.
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
  if (capacity_ > Bytes(0)) segments_.emplace(Offset(0), Segment{capacity_, true, {}});
}

bool OffsetAllocator::is_tail(Segments::iterator hole) const {
  return std::next(hole) == segments_.end();
}

void OffsetAllocator::insert(Segments::iterator hole) {
  if (is_tail(hole)) return;
  const Rank rank{hole->second.size, hole->first, hole};
  const size_t c = class_of(rank.size);
  ranks_[c].insert(std::lower_bound(ranks_[c].begin(), ranks_[c].end(), rank), rank);
  occupied_[c / kWordBits] |= uint64_t{1} << c % kWordBits;
}

void OffsetAllocator::remove(Segments::iterator hole) {
  if (is_tail(hole)) return;
  const Rank rank{hole->second.size, hole->first, hole};
  const size_t c = class_of(rank.size);
  ranks_[c].erase(std::lower_bound(ranks_[c].begin(), ranks_[c].end(), rank));
  if (ranks_[c].empty()) occupied_[c / kWordBits] &= ~(uint64_t{1} << c % kWordBits);
}

// The end of segments_ if none fits.
OffsetAllocator::Segments::iterator OffsetAllocator::best_hole(Bytes size) {
  size_t c = class_of(size);
  const Rank wanted{size, Offset(0), {}};
  if (const auto best = std::lower_bound(ranks_[c].begin(), ranks_[c].end(), wanted);
      best != ranks_[c].end()) {
    return best->hole;
  }
  ++c;
  for (size_t word = c / kWordBits; word < occupied_.size(); ++word) {
    uint64_t bits = occupied_[word];
    if (word == c / kWordBits) bits &= ~uint64_t{0} << c % kWordBits;
    if (bits == 0) continue;
    return ranks_[word * kWordBits + static_cast<size_t>(std::countr_zero(bits))].front().hole;
  }
  const auto tail = std::prev(segments_.end());
  return tail->second.is_hole && tail->second.size >= size ? tail : segments_.end();
}

std::optional<Allocation> OffsetAllocator::allocate(Bytes size, bool from_top) {
  TIDEMARK_CHECK(size >= Bytes(0), "size " + std::to_string(size.count()));
  if (size > capacity_ || segments_.empty()) return std::nullopt;
  size = std::max(align_up(size), kAlignment);
  const auto hole = best_hole(size);
  if (hole == segments_.end()) return std::nullopt;
  const bool upper = from_top && !is_tail(hole);
  return take(hole, upper ? hole->first + (hole->second.size - size) : hole->first, size);
}

std::optional<Allocation> OffsetAllocator::allocate_at(Offset offset, Bytes size) {
  TIDEMARK_CHECK(size >= Bytes(0), "size " + std::to_string(size.count()));
  TIDEMARK_CHECK(offset >= Offset(0) && offset.value() % kAlignment.count() == 0,
                 "offset " + std::to_string(offset.value()));
  if (size > capacity_ || segments_.empty()) return std::nullopt;
  size = std::max(align_up(size), kAlignment);
  const auto hole = std::prev(segments_.upper_bound(offset));
  if (!hole->second.is_hole) return std::nullopt;
  if (offset > hole->first + hole->second.size - size) return std::nullopt;
  return take(hole, offset, size);
}

void OffsetAllocator::add_copies(Segment& hole, const Copies& copies) {
  if (!hole.copies) hole.copies = std::make_unique<std::vector<Copies>>();
  hole.copies->push_back(copies);
}

void OffsetAllocator::add_fence(Segment& hole, const Block& part, const Fence& last_use) {
  if (latest_copy(last_use) == 0) {
    hole.fence.include(last_use);
    return;
  }
  hole.fence.include(Event{StreamId::kCompute, last_use[StreamId::kCompute]});
  add_copies(hole, {part, last_use});
}

void OffsetAllocator::merge_fences(Segment& hole, Segment& other) {
  hole.fence.include(other.fence);
  if (!other.copies) return;
  if (!hole.copies) {
    hole.copies = std::move(other.copies);
    return;
  }
  std::vector<Copies>& all = *hole.copies;
  all.insert(all.end(), other.copies->begin(), other.copies->end());
  while (all.size() > kMostCopies) {
    const auto oldest =
        std::min_element(all.begin(), all.end(), [](const Copies& a, const Copies& b) {
          return latest_copy(a.fence) < latest_copy(b.fence);
        });
    hole.fence.include(oldest->fence);
    *oldest = all.back();
    all.pop_back();
  }
}

Allocation OffsetAllocator::take(Segments::iterator hole, Offset offset, Bytes size) {
  const Offset begin = hole->first;
  const Offset end = begin + hole->second.size;
  const Fence all = hole->second.fence;
  const auto copies = std::exchange(hole->second.copies, nullptr);
  const Block block{offset, size};

  remove(hole);
  Segment* lower = nullptr;
  Segment* upper = nullptr;
  auto next = std::next(hole);
  if (block.end() < end) {
    next = segments_.emplace_hint(next, block.end(), Segment{end - block.end(), true, all});
    insert(next);
    upper = &next->second;
  }
  if (begin < offset) {
    segments_.emplace_hint(next, offset, Segment{size, false, {}});
    hole->second.size = offset - begin;
    insert(hole);
    lower = &hole->second;
  } else {
    hole->second.size = size;
    hole->second.is_hole = false;
  }
  used_ += size;
  high_water_ = std::max(high_water_, block.end());
  if (!copies) return {block, all};
  Fence fence = all;
  for (const Copies& part : *copies) {
    if (part.of.offset < block.end() && block.offset < part.of.end()) fence.include(part.fence);
    if (lower && part.of.offset < offset) add_copies(*lower, part);
    if (upper && part.of.end() > block.end()) add_copies(*upper, part);
  }
  return {block, fence};
}

void OffsetAllocator::free(const Block& block, const Fence& last_use) {
  auto here = segments_.find(block.offset);
  TIDEMARK_CHECK(
      here != segments_.end() && !here->second.is_hole && here->second.size == block.size,
      describe(block) + " is not a block that was handed out");
  used_ -= block.size;
  here->second.is_hole = true;
  here->second.fence = {};
  add_fence(here->second, block, last_use);

  if (const auto next = std::next(here); next != segments_.end() && next->second.is_hole) {
    remove(next);
    here->second.size += next->second.size;
    merge_fences(here->second, next->second);
    segments_.erase(next);
  }
  if (here != segments_.begin()) {
    if (const auto previous = std::prev(here); previous->second.is_hole) {
      remove(previous);
      previous->second.size += here->second.size;
      merge_fences(previous->second, here->second);
      segments_.erase(here);
      here = previous;
    }
  }
  insert(here);
}

Bytes OffsetAllocator::largest_hole() const {
  if (segments_.empty()) return Bytes(0);
  const Segment& last = segments_.rbegin()->second;
  Bytes largest = last.is_hole ? last.size : Bytes(0);
  for (size_t word = occupied_.size(); word-- > 0;) {
    if (occupied_[word] == 0) continue;
    const size_t c =
        word * kWordBits + static_cast<size_t>(std::bit_width(occupied_[word])) - 1;
    return std::max(largest, ranks_[c].back().size);
  }
  return largest;
}

bool OffsetAllocator::packed() const {
  if (segments_.empty()) return true;
  const auto& [offset, last] = *segments_.rbegin();
  return last.is_hole ? offset == Offset(0) + used_ : used_ == capacity_;
}

void OffsetAllocator::reset_high_water() {
  high_water_ = Offset(0);
  if (segments_.empty()) return;
  const auto& [offset, last] = *segments_.rbegin();
  high_water_ = last.is_hole ? offset : offset + last.size;
}

std::vector<Block> OffsetAllocator::holes() const {
  std::vector<Block> result;
  for (const auto& [offset, segment] : segments_) {
    if (segment.is_hole) result.push_back({offset, segment.size});
  }
  return result;
}

std::vector<Block> OffsetAllocator::blocks() const {
  std::vector<Block> result;
  for (const auto& [offset, segment] : segments_) {
    if (!segment.is_hole) result.push_back({offset, segment.size});
  }
  return result;
}

void OffsetAllocator::hold(const Block& unused, const Fence& last_use) {
  if (unused.size == Bytes(0)) return;
  const auto hole = std::prev(segments_.upper_bound(unused.offset));
  TIDEMARK_CHECK(hole->second.is_hole && unused.end() <= hole->first + hole->second.size,
                 "only unused space is held");
  add_fence(hole->second, unused, last_use);
}

}  // namespace tidemark
