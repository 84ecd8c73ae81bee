#include "runtime/planner/baselines/caching_allocator.h"

#include <iterator>

namespace tidemark::planner {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

constexpr Bytes kBlockRounding = 512_B;
constexpr Bytes kLargestSmallRequest = 1_MiB;
constexpr Bytes kSmallSegment = 2_MiB;
constexpr Bytes kLargeSegment = 20_MiB;
constexpr Bytes kOwnSegment = 10_MiB;  // from this size on, a request has a segment of its own
constexpr Bytes kSegmentRounding = 2_MiB;
constexpr Bytes kLeastLargeRemainder = 1_MiB;  // exclusive
constexpr Bytes kMostUnsplitExcess = 20_MiB;   // exclusive

Bytes segment_size(bool large, Bytes size) {
  if (!large) return kSmallSegment;
  return size < kOwnSegment ? kLargeSegment : align_up(size, kSegmentRounding);
}

}  // namespace

CachingAllocator::FreeBlock CachingAllocator::free_block(const Blocks::value_type& entry) {
  const auto& [address, block] = entry;
  return {block.large, block.stream, block.size, address};
}

CachingAllocator::Blocks::iterator CachingAllocator::take_free_block(bool large, int32_t stream,
                                                                     Bytes size) {
  const auto found = free_.lower_bound({large, stream, size, Offset()});
  if (found == free_.end() || found->large != large || found->stream != stream) {
    return blocks_.end();
  }
  const bool oversize = size >= max_split_size_;
  if (!oversize && found->size >= max_split_size_) return blocks_.end();
  if (oversize && found->size - size >= kMostUnsplitExcess) return blocks_.end();
  const auto block = blocks_.find(found->address);
  free_.erase(found);
  return block;
}

CachingAllocator::Blocks::iterator CachingAllocator::take_segment(bool large, int32_t stream,
                                                                  Bytes size) {
  const Bytes whole = segment_size(large, size);
  const Offset address = Offset() + reserved_;
  reserved_ += whole;
  return blocks_.emplace(address, Block{whole, segments_++, stream, large, false}).first;
}

Offset CachingAllocator::allocate(Bytes size, int32_t stream) {
  size = align_up(size, kBlockRounding);
  const bool large = size > kLargestSmallRequest;
  auto taken = take_free_block(large, stream, size);
  if (taken == blocks_.end()) taken = take_segment(large, stream, size);
  auto& [address, block] = *taken;
  const Bytes left = block.size - size;
  const bool split =
      large ? size < max_split_size_ && left > kLeastLargeRemainder : left >= kBlockRounding;
  if (split) {
    const Block rest{left, block.segment, stream, large, false};
    free_.insert(free_block(*blocks_.emplace(address + size, rest).first));
    block.size = size;
  }
  block.used = true;
  allocated_ += block.size;
  return address;
}

void CachingAllocator::free(Offset address) {
  const auto freed = blocks_.find(address);
  freed->second.used = false;
  allocated_ -= freed->second.size;
  free_.insert(free_block(*freed));
  merge_with_next(freed);
  if (freed != blocks_.begin()) merge_with_next(std::prev(freed));
}

void CachingAllocator::merge_with_next(Blocks::iterator lower) {
  const auto upper = std::next(lower);
  if (upper == blocks_.end() || lower->second.used || upper->second.used ||
      lower->second.segment != upper->second.segment) {
    return;
  }
  free_.erase(free_block(*lower));
  free_.erase(free_block(*upper));
  lower->second.size += upper->second.size;
  blocks_.erase(upper);
  free_.insert(free_block(*lower));
}

}  // namespace tidemark::planner
