#include "runtime/memory/offset_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace literals;

// Blocks in units of kAlignment, so that pictures can be drawn: one letter is one unit.
Bytes units(int64_t n) { return n * kAlignment; }
Block unit_block(int64_t offset, int64_t size) {
  return {Offset(0) + units(offset), units(size)};
}
Fence at(StreamId stream, Ticket ticket) { return Fence(Event{stream, ticket}); }

Block must(const std::optional<Allocation>& allocation) {
  EXPECT_TRUE(allocation.has_value());
  return allocation ? allocation->block : Block{};
}

// Blocks of so many units, one after the other.
std::vector<Block> fill(OffsetAllocator& allocator, const std::vector<int64_t>& sizes) {
  std::vector<Block> blocks;
  for (const int64_t size : sizes) blocks.push_back(must(allocator.allocate(units(size))));
  return blocks;
}

TEST(OffsetAllocatorTest, RoundsUpAndStartsAtTheBottom) {
  OffsetAllocator allocator(10_KiB);
  EXPECT_EQ(must(allocator.allocate(1_B)), unit_block(0, 1));
  EXPECT_EQ(must(allocator.allocate(0_B)), unit_block(1, 1));
  EXPECT_EQ(must(allocator.allocate(513_B)), unit_block(2, 2));
  EXPECT_EQ(allocator.used(), units(4));
  EXPECT_EQ(allocator.unused(), units(16));
  EXPECT_EQ(allocator.high_water(), Offset(2048));
}

TEST(OffsetAllocatorTest, CapacityIsRoundedDownAndExact) {
  OffsetAllocator allocator(Bytes(1535));
  EXPECT_EQ(allocator.capacity(), 1_KiB);
  EXPECT_FALSE(allocator.fits(Bytes(1025)));
  EXPECT_FALSE(allocator.allocate(Bytes(1025)));
  EXPECT_TRUE(allocator.fits(1_KiB));
  EXPECT_TRUE(allocator.allocate(1_KiB));
  EXPECT_FALSE(allocator.fits(0_B));
  EXPECT_FALSE(allocator.allocate(0_B));
  EXPECT_EQ(allocator.largest_hole(), 0_B);
}

TEST(OffsetAllocatorTest, EmptyRangeHasNothing) {
  OffsetAllocator allocator(Bytes(511));
  EXPECT_EQ(allocator.capacity(), 0_B);
  EXPECT_FALSE(allocator.allocate(1_B));
  EXPECT_FALSE(allocator.allocate_at(Offset(0), 1_B));
  EXPECT_FALSE(allocator.fits(0_B));
  allocator.reset_high_water();
  EXPECT_EQ(allocator.high_water(), Offset(0));
}

TEST(OffsetAllocatorTest, HugeSizesAreAnAnswerNotAnOverflow) {
  OffsetAllocator allocator(1_MiB);
  const Bytes huge(std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(allocator.allocate(huge));
  EXPECT_FALSE(allocator.allocate_at(Offset(512), huge));
  EXPECT_FALSE(allocator.fits(huge));
  EXPECT_THROW(allocator.allocate(Bytes(-1)), std::logic_error);
}

//   AAAAbCCCdEEf........     A, C, E are freed: holes of 4, 3 and 2, and the tail
TEST(OffsetAllocatorTest, TakesTheSmallestHoleThatFits) {
  OffsetAllocator allocator(units(20));
  const std::vector<Block> blocks = fill(allocator, {4, 1, 3, 1, 2, 1});
  for (const size_t i : {0, 2, 4}) allocator.free(blocks[i], {});
  EXPECT_THAT(allocator.holes(), ElementsAre(unit_block(0, 4), unit_block(5, 3),
                                             unit_block(9, 2), unit_block(12, 8)));
  EXPECT_EQ(must(allocator.allocate(units(1))), unit_block(9, 1));
  EXPECT_EQ(must(allocator.allocate(units(3))), unit_block(5, 3));
  EXPECT_EQ(must(allocator.allocate(units(3))), unit_block(0, 3));
  EXPECT_EQ(must(allocator.allocate(units(2))), unit_block(12, 2));
}

//   AAbCCd....      two holes of 2
TEST(OffsetAllocatorTest, TiesGoToTheLowestOffset) {
  OffsetAllocator allocator(units(10));
  const std::vector<Block> blocks = fill(allocator, {2, 1, 2, 1});
  const Block a = blocks[0], c = blocks[2];
  allocator.free(c, {});
  allocator.free(a, {});
  EXPECT_EQ(must(allocator.allocate(units(2))), a);
  EXPECT_EQ(must(allocator.allocate(units(2))), c);
}

//   AAAAb...        the tail of 3 would be the better fit, and is not taken
TEST(OffsetAllocatorTest, TheTailIsTheLastResort) {
  OffsetAllocator allocator(units(8));
  allocator.free(fill(allocator, {4, 1})[0], {});
  EXPECT_EQ(must(allocator.allocate(units(3))), unit_block(0, 3));
  EXPECT_EQ(must(allocator.allocate(units(2))), unit_block(5, 2));
}

//   AAAAb...   ->   ..wwb...   ->   ..wwbvvv
TEST(OffsetAllocatorTest, FromTopCutsTheUpperEndButNotOfTheTail) {
  OffsetAllocator allocator(units(8));
  allocator.free(fill(allocator, {4, 1})[0], {});
  EXPECT_EQ(must(allocator.allocate(units(2), true)), unit_block(2, 2));
  EXPECT_EQ(must(allocator.allocate(units(3), true)), unit_block(5, 3));
  EXPECT_EQ(must(allocator.allocate(units(2), true)), unit_block(0, 2));
}

//   ....aa....
TEST(OffsetAllocatorTest, AllocateAtTakesThatPlaceOrNothing) {
  OffsetAllocator allocator(units(10));
  EXPECT_EQ(must(allocator.allocate_at(Offset(0) + units(4), units(2))), unit_block(4, 2));
  EXPECT_FALSE(allocator.allocate_at(Offset(0) + units(3), units(2)));
  EXPECT_FALSE(allocator.allocate_at(Offset(0) + units(5), units(1)));
  EXPECT_FALSE(allocator.allocate_at(Offset(0) + units(9), units(2)));
  EXPECT_FALSE(allocator.allocate_at(Offset(0) + units(10), units(1)));
  EXPECT_THAT(allocator.holes(), ElementsAre(unit_block(0, 4), unit_block(6, 4)));
  EXPECT_EQ(must(allocator.allocate_at(Offset(0) + units(1), units(2))), unit_block(1, 2));
  EXPECT_EQ(must(allocator.allocate_at(Offset(0) + units(6), units(4))), unit_block(6, 4));
  EXPECT_THAT(allocator.holes(), ElementsAre(unit_block(0, 1), unit_block(3, 1)));
  EXPECT_THAT(allocator.blocks(),
              ElementsAre(unit_block(1, 2), unit_block(4, 2), unit_block(6, 4)));
  EXPECT_EQ(allocator.largest_hole(), units(1));
  EXPECT_THROW(allocator.allocate_at(Offset(1), 1_B), std::logic_error);
  EXPECT_THROW(allocator.allocate_at(Offset(-512), 1_B), std::logic_error);
}

//   AABBCC  -> free A, C, then B: one hole
TEST(OffsetAllocatorTest, NeighboursCoalesce) {
  OffsetAllocator allocator(units(7));
  const std::vector<Block> blocks = fill(allocator, {2, 2, 2, 1});
  allocator.free(blocks[0], {});
  allocator.free(blocks[2], {});
  EXPECT_THAT(allocator.holes(), ElementsAre(unit_block(0, 2), unit_block(4, 2)));
  allocator.free(blocks[1], {});
  EXPECT_THAT(allocator.holes(), ElementsAre(unit_block(0, 6)));
  EXPECT_EQ(allocator.largest_hole(), units(6));
}

//   A (compute 7, offload 1)  B (offload 3)  merge: whoever takes a part waits for what was
//   done with it
TEST(OffsetAllocatorTest, MergedHolesTellPartsApart) {
  OffsetAllocator allocator(units(6));
  const auto first = allocator.allocate(units(2));
  EXPECT_EQ(first->fence, Fence());
  const Block b = must(allocator.allocate(units(2)));
  must(allocator.allocate(units(1)));
  Fence used = at(StreamId::kCompute, 7);
  used.include(Event{StreamId::kOffload, 1});
  allocator.free(first->block, used);
  allocator.free(b, at(StreamId::kOffload, 3));

  Fence both = used;
  both.include(Event{StreamId::kOffload, 3});
  EXPECT_EQ(allocator.allocate(units(1))->fence, used);
  const auto across = allocator.allocate(units(2));
  EXPECT_EQ(across->fence, both);
  EXPECT_EQ(allocator.allocate(units(1))->fence, at(StreamId::kOffload, 3));
  EXPECT_EQ(allocator.allocate(units(1))->fence, Fence());  // the tail, never used
}

TEST(OffsetAllocatorTest, HighWaterIsTheHighestEndSinceTheReset) {
  OffsetAllocator allocator(units(10));
  const Block a = must(allocator.allocate(units(3)));
  const Block b = must(allocator.allocate(units(4)));
  allocator.free(b, {});
  EXPECT_EQ(allocator.high_water(), Offset(0) + units(7));
  allocator.reset_high_water();
  EXPECT_EQ(allocator.high_water(), a.end());
  must(allocator.allocate(units(1)));
  EXPECT_EQ(allocator.high_water(), Offset(0) + units(4));
  const Block last = must(allocator.allocate(units(6)));
  EXPECT_EQ(last.end(), Offset(0) + units(10));
  allocator.reset_high_water();
  EXPECT_EQ(allocator.high_water(), Offset(0) + units(10));
}

TEST(OffsetAllocatorTest, MisuseIsCaughtAndChangesNothing) {
  OffsetAllocator allocator(units(10));
  const Block a = must(allocator.allocate(units(4)));
  const Block b = must(allocator.allocate(units(2)));
  EXPECT_THROW(allocator.free(unit_block(0, 2), {}), std::logic_error);  // a part of one
  EXPECT_THROW(allocator.free(unit_block(2, 2), {}), std::logic_error);
  EXPECT_THROW(allocator.free(unit_block(0, 6), {}), std::logic_error);  // two at once
  EXPECT_THROW(allocator.free(unit_block(6, 4), {}), std::logic_error);  // a hole
  allocator.free(a, {});
  EXPECT_THROW(allocator.free(a, {}), std::logic_error);  // twice
  allocator.free(b, {});
  EXPECT_THROW(allocator.free(b, {}), std::logic_error);  // twice, and merged since
  EXPECT_EQ(allocator.used(), 0_B);
  EXPECT_THAT(allocator.holes(), ElementsAre(unit_block(0, 10)));
  EXPECT_THAT(allocator.blocks(), IsEmpty());
}

// The allocator's contract, implemented in the slowest way: an owner for each unit.
class Model {
 public:
  explicit Model(int64_t size) : owner_(static_cast<size_t>(size)), fence_(owner_.size()) {}

  std::optional<Allocation> allocate(int64_t size, bool from_top) {
    std::optional<Block> best;
    for (const Block& hole : runs(0)) {
      if (hole.size < units(size)) continue;
      const bool tail = hole.end() == end();
      if (!best || (hole.size < best->size && !tail)) best = hole;
    }
    if (!best) return std::nullopt;
    const bool upper = from_top && best->end() != end();
    return take(upper ? best->end() - units(size) : best->offset, size);
  }

  std::optional<Allocation> allocate_at(int64_t offset, int64_t size) {
    if (offset + size > static_cast<int64_t>(owner_.size())) return std::nullopt;
    for (int64_t i = offset; i < offset + size; ++i) {
      if (owner_[static_cast<size_t>(i)] != 0) return std::nullopt;
    }
    return take(Offset(0) + units(offset), size);
  }

  void free(const Block& block, const Fence& fence) {
    fill(block, 0);
    std::fill(fence_.begin() + static_cast<int64_t>(first(block)),
              fence_.begin() + static_cast<int64_t>(last(block)), fence);
  }

  std::vector<Block> holes() const { return runs(0); }
  int64_t used() const {
    return std::count_if(owner_.begin(), owner_.end(), [](int o) { return o != 0; });
  }
  int64_t end_of_last() const {
    for (size_t i = owner_.size(); i-- > 0;) {
      if (owner_[i] != 0) return static_cast<int64_t>(i) + 1;
    }
    return 0;
  }

 private:
  static size_t first(const Block& b) {
    return static_cast<size_t>(b.offset.value() / kAlignment.count());
  }
  static size_t last(const Block& b) {
    return static_cast<size_t>(b.end().value() / kAlignment.count());
  }
  Offset end() const { return Offset(0) + units(static_cast<int64_t>(owner_.size())); }

  std::vector<Block> runs(int owner) const {
    std::vector<Block> result;
    for (size_t i = 0; i < owner_.size();) {
      size_t j = i;
      while (j < owner_.size() && owner_[j] == owner_[i]) ++j;
      if (owner_[i] == owner) {
        result.push_back(unit_block(static_cast<int64_t>(i), static_cast<int64_t>(j - i)));
      }
      i = j;
    }
    return result;
  }

  Allocation take(Offset offset, int64_t size) {
    const Block block{offset, units(size)};
    Fence fence;
    for (size_t i = first(block); i < last(block); ++i) fence.include(fence_[i]);
    fill(block, ++last_owner_);
    return {block, fence};
  }

  void fill(const Block& block, int owner) {
    std::fill(owner_.begin() + static_cast<int64_t>(first(block)),
              owner_.begin() + static_cast<int64_t>(last(block)), owner);
  }

  std::vector<int> owner_;  // 0: free
  std::vector<Fence> fence_;
  int last_owner_ = 0;
};

TEST(OffsetAllocatorTest, AgreesWithTheModelOnRandomCalls) {
  int64_t allocations = 0, exact = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto upto = [&](int64_t n) {
      return std::uniform_int_distribution<int64_t>(0, n)(random);
    };
    const int64_t size = 1 + upto(seed % 2 ? 60 : 600);
    const int64_t largest = 1 + size / (1 + upto(20));
    OffsetAllocator allocator(units(size));
    Model model(size);
    std::vector<Block> live;
    Offset high_water;
    for (Ticket ticket = 1; ticket <= 800; ++ticket) {
      const int64_t choice = upto(99);
      if (choice < 45 && !live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        Fence fence = at(kAllStreams[random() % kStreamCount], ticket);
        if (choice < 10) fence.include(Event{StreamId::kCompute, ticket / 2});
        allocator.free(live.back(), fence);
        model.free(live.back(), fence);
        live.pop_back();
      } else {
        const int64_t n = 1 + upto(largest - 1);
        const int64_t where = upto(size);
        const bool fixed = choice >= 95;
        const bool from_top = choice >= 80;
        const auto expected = fixed ? model.allocate_at(where, n) : model.allocate(n, from_top);
        EXPECT_TRUE(fixed || allocator.fits(units(n)) == expected.has_value());
        // A size in bytes that rounds up to n units.
        const Bytes bytes = units(n) - Bytes(upto(511));
        const auto actual = fixed ? allocator.allocate_at(Offset(0) + units(where), bytes)
                                  : allocator.allocate(bytes, from_top);
        ASSERT_EQ(actual.has_value(), expected.has_value());
        if (actual) {
          ASSERT_EQ(actual->block, expected->block);
          // If a hole has many parts, the oldest may be waited for needlessly.
          Fence both = actual->fence;
          both.include(expected->fence);
          ASSERT_EQ(actual->fence, both);
          ++allocations;
          exact += actual->fence == expected->fence ? 1 : 0;
          live.push_back(actual->block);
          high_water = std::max(high_water, actual->block.end());
        }
      }
      if (ticket % 97 == 0) {
        allocator.reset_high_water();
        high_water = Offset(0) + units(model.end_of_last());
      }
      ASSERT_EQ(allocator.holes(), model.holes());
      ASSERT_EQ(allocator.used(), units(model.used()));
      ASSERT_EQ(allocator.high_water(), high_water);
      Bytes hole{0};
      for (const Block& h : model.holes()) hole = std::max(hole, h.size);
      ASSERT_EQ(allocator.largest_hole(), hole);
    }
    std::sort(live.begin(), live.end(),
              [](const Block& a, const Block& b) { return a.offset < b.offset; });
    EXPECT_EQ(allocator.blocks(), live);
  }
  EXPECT_GT(exact, allocations * 8 / 10);
}

// A sequence that fits in a large range gets the same offsets in a range of its high water
// mark.
TEST(OffsetAllocatorTest, LayoutDoesNotDependOnTheCapacity) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto run = [&](Bytes capacity, std::vector<Block>& placed) {
      std::mt19937_64 random(seed);
      OffsetAllocator allocator(capacity);
      std::vector<Block> live;
      for (int i = 0; i < 1000; ++i) {
        const bool grow = random() % 100 < (i < 400 ? 65U : 45U);
        const Bytes size = units(static_cast<int64_t>(1 + random() % 50));
        const bool from_top = random() % 4 == 0;
        if (grow || live.empty()) {
          live.push_back(must(allocator.allocate(size, from_top)));
          placed.push_back(live.back());
        } else {
          std::swap(live[random() % live.size()], live.back());
          allocator.free(live.back(), {});
          live.pop_back();
        }
      }
      return allocator.high_water() - Offset(0);
    };
    std::vector<Block> ample, exact;
    const Bytes peak = run(1_GiB, ample);
    EXPECT_EQ(run(peak, exact), peak);
    EXPECT_EQ(ample, exact);
  }
}

}  // namespace
}  // namespace tidemark
