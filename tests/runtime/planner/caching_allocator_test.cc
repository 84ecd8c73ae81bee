// The model of PyTorch's CUDA caching allocator, against PyTorch's own and by hand, and the
// baseline made with it.
#include "runtime/planner/baselines/caching_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/core/text_file.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/validator.h"
#include "tests/runtime/planner/problem_builder.h"
#include "tests/runtime/planner/random_problem.h"

namespace tidemark::planner {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using ::testing::IsEmpty;

TEST(CachingAllocatorTest, TakesSegmentsAsLargeAsPyTorch) {
  struct Case {
    Bytes size, allocated, reserved;
  };
  for (const Case& c : {
           Case{1_B, 512_B, 2_MiB},
           {512_B, 512_B, 2_MiB},
           {513_B, 1_KiB, 2_MiB},
           {1_MiB, 1_MiB, 2_MiB},
           {1_MiB + 1_B, 1_MiB + 512_B, 20_MiB},
           {10_MiB - 512_B, 10_MiB - 512_B, 20_MiB},
           {10_MiB - 1_B, 10_MiB, 10_MiB},
           {10_MiB, 10_MiB, 10_MiB},
           {10_MiB + 1_B, 10_MiB + 512_B, 12_MiB},
           {11_MiB, 12_MiB, 12_MiB},  // 1 MiB is left, not more
           // PyTorch's test_cuda.py, test_allocator_settings: 21 Mi floats are 84 MiB.
           {84_MiB, 84_MiB, 84_MiB},
       }) {
    CachingAllocator allocator;
    EXPECT_EQ(allocator.allocate(c.size), Offset(0));
    EXPECT_EQ(allocator.reserved(), c.reserved) << c.size.count();
    EXPECT_EQ(allocator.allocated(), c.allocated) << c.size.count();
    EXPECT_EQ(allocator.segment_count(), 1);
  }
}

TEST(CachingAllocatorTest, SplitsSmallBlocksFrom512Bytes) {
  CachingAllocator allocator;
  EXPECT_EQ(allocator.allocate(1_MiB), Offset(0));
  EXPECT_EQ(allocator.allocate(1_MiB - 512_B), Offset() + 1_MiB);
  EXPECT_EQ(allocator.allocate(1_B), Offset() + (2_MiB - 512_B));
  EXPECT_EQ(allocator.reserved(), 2_MiB);
  EXPECT_EQ(allocator.allocate(1_B), Offset() + 2_MiB);
}

TEST(CachingAllocatorTest, SplitsLargeBlocksAboveAMebibyte) {
  CachingAllocator allocator;
  EXPECT_EQ(allocator.allocate(9_MiB), Offset(0));
  EXPECT_EQ(allocator.allocate(9_MiB + 512_KiB), Offset() + 9_MiB);
  EXPECT_EQ(allocator.allocated(), 18_MiB + 512_KiB);
  // Takes all of the last 1.5 MiB.
  EXPECT_EQ(allocator.allocate(1_MiB + 1_KiB), Offset() + (18_MiB + 512_KiB));
  EXPECT_EQ(allocator.allocated(), 20_MiB);

  CachingAllocator exactly;
  EXPECT_EQ(exactly.allocate(9_MiB), Offset(0));
  EXPECT_EQ(exactly.allocate(8_MiB), Offset() + 9_MiB);
  EXPECT_EQ(exactly.allocate(2_MiB), Offset() + 17_MiB);  // of 3 MiB
  EXPECT_EQ(exactly.allocated(), 20_MiB);
  EXPECT_EQ(exactly.reserved(), 20_MiB);
}

TEST(CachingAllocatorTest, MergesNeighboursOfOneSegment) {
  CachingAllocator allocator;
  const Offset a = allocator.allocate(512_KiB);
  const Offset b = allocator.allocate(512_KiB);
  const Offset c = allocator.allocate(512_KiB);
  allocator.free(c);  // merges with the rest of the segment
  allocator.free(a);
  EXPECT_EQ(allocator.allocate(1_MiB), c);
  allocator.free(c);
  allocator.free(b);  // merges on both sides
  EXPECT_EQ(allocator.allocate(1_MiB), Offset(0));
  EXPECT_EQ(allocator.allocate(1_MiB), Offset() + 1_MiB);
  EXPECT_EQ(allocator.reserved(), 2_MiB);
}

TEST(CachingAllocatorTest, DoesNotMergeSegments) {
  CachingAllocator allocator;
  const Offset first = allocator.allocate(10_MiB);
  const Offset second = allocator.allocate(10_MiB);
  allocator.free(first);
  allocator.free(second);
  EXPECT_EQ(allocator.allocate(20_MiB), Offset() + 20_MiB);
  EXPECT_EQ(allocator.reserved(), 40_MiB);
  EXPECT_EQ(allocator.allocated(), 20_MiB);
}

TEST(CachingAllocatorTest, TakesTheSmallestThenTheLowest) {
  CachingAllocator allocator;
  std::vector<Offset> blocks;
  for (const Bytes size : {14_MiB, 12_MiB, 12_MiB, 16_MiB}) {
    blocks.push_back(allocator.allocate(size));
  }
  for (const int i : {3, 2, 0, 1}) allocator.free(blocks[i]);
  EXPECT_EQ(allocator.allocate(11_MiB + 512_KiB), blocks[1]);
  EXPECT_EQ(allocator.allocate(11_MiB + 512_KiB), blocks[2]);
  EXPECT_EQ(allocator.allocate(11_MiB + 512_KiB), blocks[0]);
  EXPECT_EQ(allocator.reserved(), 54_MiB);
}

TEST(CachingAllocatorTest, KeepsPoolsAndStreamsApart) {
  CachingAllocator allocator;
  const Offset large = allocator.allocate(5_MiB, 0);
  allocator.free(large);
  EXPECT_EQ(allocator.allocate(1_MiB, 0), Offset() + 20_MiB);
  EXPECT_EQ(allocator.allocate(5_MiB, 1), Offset() + 22_MiB);
  EXPECT_EQ(allocator.allocate(5_MiB, 0), large);
  EXPECT_EQ(allocator.reserved(), 42_MiB);
}

TEST(CachingAllocatorTest, DoesNotSplitFromTheMaximumOn) {
  CachingAllocator allocator(32_MiB);
  const Offset oversize = allocator.allocate(60_MiB);
  allocator.free(oversize);
  EXPECT_EQ(allocator.allocate(30_MiB), Offset() + 60_MiB);  // must not split the 60
  EXPECT_EQ(allocator.allocate(40_MiB), Offset() + 90_MiB);  // 20 less
  EXPECT_EQ(allocator.allocate(40_MiB + 512_B), oversize);   // all of it
  EXPECT_EQ(allocator.allocated(), 130_MiB);
  EXPECT_EQ(allocator.reserved(), 130_MiB);
}

// tests/golden/torch_allocator.txt is what PyTorch 2.15's own allocator did
// (bench/peers/torch_allocator_cuda.cc).
TEST(CachingAllocatorTest, DoesWhatPyTorchDoes) {
  std::istringstream record(read_text_file(TIDEMARK_GOLDEN_DIR "/torch_allocator.txt"));
  std::optional<CachingAllocator> allocator;
  std::vector<Offset> blocks;
  int recorded = 0, allocators = 0;
  std::string what;
  while (record >> what) {
    int64_t number = 0;
    record >> number;
    if (what == "max_split_size") {
      allocator.emplace(number == 0 ? Bytes(INT64_MAX) : Bytes(number));
      blocks.clear();
      ++allocators;
    } else if (what == "+") {
      int32_t stream = 0;
      int64_t address = 0;
      record >> stream >> address;
      ASSERT_EQ(allocator->allocate(Bytes(number), stream), Offset(address)) << blocks.size();
      blocks.emplace_back(address);
    } else if (what == "-") {
      allocator->free(blocks.at(number));
    } else {
      int64_t allocated = 0, segments = 0;
      record >> allocated >> segments;
      ASSERT_EQ(what, "=");
      ASSERT_EQ(allocator->reserved(), Bytes(number));
      ASSERT_EQ(allocator->allocated(), Bytes(allocated));
      ASSERT_EQ(allocator->segment_count(), segments);
      ++recorded;
    }
  }
  EXPECT_EQ(allocators, 2);
  EXPECT_EQ(recorded, 32);
}

// w lies in a small segment, y and b's workspace in a large one; z in what w has left.
TEST(PyTorchTest, ReservesSegments) {
  Problem problem;
  const StorageId w = add_storage(problem, "w", 1024, Kind::kParameter);
  problem.storages[w].at_start = problem.storages[w].at_end = true;
  const StorageId y = add_storage(problem, "y", (3_MiB).count());
  const StorageId z = add_storage(problem, "z", (1_MiB).count());
  add_operator(problem, "a", {w}, {y});
  const OpId b = add_operator(problem, "b", {y}, {z});
  problem.operators[b].workspace = 5_MiB;
  const Plan plan = pytorch_plan(problem);
  EXPECT_THAT(violations(problem, plan), IsEmpty());
  EXPECT_EQ(plan.peak, 22_MiB);
  EXPECT_EQ(plan.load, 9_MiB + 1_KiB);
  const auto below_top = [&](size_t k) {
    return Offset() + 22_MiB - plan.placements[k].offset;
  };
  EXPECT_EQ(below_top(0), 1_KiB);          // w
  EXPECT_EQ(below_top(1), 2_MiB + 3_MiB);  // y
  EXPECT_EQ(below_top(2), 1_KiB + 1_MiB);  // z
  EXPECT_EQ(below_top(3), 5_MiB + 5_MiB);  // the workspace, beside y
}

TEST(PyTorchTest, PlansAreValidAndKeepStreamsApart) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Problem problem = random_problem(seed, {.ops = 1 + static_cast<int>(seed % 40)});
    for (Storage& s : problem.storages) {
      s.size = s.size * 700'000;
      s.alias_offset = s.alias_offset * 700'000;
    }
    for (Operator& op : problem.operators) op.workspace = op.workspace * 700'000;
    std::vector<int32_t> stream(problem.storages.size(), 0);
    for (const Operator& op : problem.operators) {
      for (const StorageId s : op.outputs) stream[s] = op.stream;
    }
    const auto stream_of = [&](const Placement& p) {
      return p.storage != kNone ? stream[p.storage] : problem.operators[p.workspace_of].stream;
    };
    const Plan plan = pytorch_plan(problem);
    EXPECT_THAT(violations(problem, plan), IsEmpty()) << seed;
    EXPECT_EQ(plan.peak.count() % (2_MiB).count(), 0) << seed;
    for (const Placement& p : plan.placements) {
      if (p.size == Bytes(0) || p.begin == p.end) continue;
      for (const Placement& q : plan.placements) {
        if (q.size == Bytes(0) || q.begin == q.end || stream_of(p) == stream_of(q)) continue;
        EXPECT_TRUE(p.offset + p.size <= q.offset || q.offset + q.size <= p.offset) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::planner
