#include "ops/kernels/packed_loop.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark {
namespace {

TensorMeta floats(const Shape& shape, const Shape& strides, int64_t offset = 0) {
  return {DType::kFloat32, shape, strides, offset};
}

// What the kernel does: the offsets of every element of both operands, by packs.
std::vector<std::pair<int64_t, int64_t>> walk(const PackedLoop& packed) {
  std::vector<std::pair<int64_t, int64_t>> visited;
  for (int64_t p = 0; p < packed.packs; ++p) {
    int64_t at[2];
    packed.offsets(p, at);
    for (int64_t i = 0; i < packed.width; ++i) {
      if (packed.flat && p * packed.width + i >= packed.elements) break;
      visited.emplace_back(at[0] + (packed.repeats[0] ? 0 : i),
                           at[1] + (packed.repeats[1] ? 0 : i));
    }
  }
  return visited;
}

struct Case {
  const char* what;
  TensorMeta y, x;
  int width;
  bool flat;
};

TEST(PackedLoopTest, VisitsWhatTheStridedLoopVisitsInItsOrder) {
  const std::vector<Case> cases{
      {"gapless", floats({4, 8}, {8, 1}), floats({4, 8}, {8, 1}), 4, true},
      {"gapless, last pack not full", floats({5, 7}, {7, 1}), floats({5, 7}, {7, 1}), 4, true},
      {"fewer than a pack", floats({3}, {1}), floats({3}, {1}), 4, true},
      {"none", floats({0, 4}, {4, 1}), floats({0, 4}, {4, 1}), 4, true},
      {"a row for all", floats({3, 8}, {8, 1}), floats({8}, {1}), 4, false},
      {"a row of 7", floats({3, 7}, {7, 1}), floats({7}, {1}), 1, false},
      {"a value for each row", floats({3, 8}, {8, 1}), floats({3, 1}, {1, 1}), 4, false},
      {"one value", floats({3, 8}, {8, 1}), floats({}, {}), 4, false},
      {"transposed", floats({4, 8}, {8, 1}), floats({4, 8}, {1, 4}), 1, false},
      {"part of wider rows", floats({4, 8}, {8, 1}), floats({4, 8}, {12, 1}), 4, false},
      {"part of rows of 11", floats({4, 8}, {8, 1}), floats({4, 8}, {11, 1}), 1, false},
      {"starts at 4", floats({16}, {1}), floats({16}, {1}, 4), 4, true},
      {"starts at 2", floats({16}, {1}), floats({16}, {1}, 2), 1, false},
      {"three dimensions", floats({2, 3, 4}, {12, 4, 1}), floats({3, 1}, {1, 1}), 4, false},
      {"one element", floats({1, 1}, {1, 1}), floats({}, {}), 4, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const StridedLoop loop = make_loop(c.y.shape, {&c.y, &c.x});
    for (const bool packed : {true, false}) {
      const PackedLoop packs = packed ? pack(loop, {c.y, c.x}) : unpacked(loop);
      EXPECT_EQ(packs.width, packed ? c.width : 1);
      EXPECT_EQ(packs.flat, packed && c.flat);
      EXPECT_TRUE(packs.small);
      const auto visited = walk(packs);
      ASSERT_EQ(static_cast<int64_t>(visited.size()), loop.elements);
      for (int64_t i = 0; i < loop.elements; ++i) {
        EXPECT_EQ(visited[static_cast<size_t>(i)],
                  std::pair(loop.offset(0, i), loop.offset(1, i)))
            << "element " << i;
      }
    }
  }
}

TEST(PackedLoopTest, AlignmentIsOfTheTypesPack) {
  const auto width = [](DType type, int64_t offset) {
    const TensorMeta y{type, {16}, {1}, 0}, x{type, {16}, {1}, offset};
    return pack(make_loop(y.shape, {&y, &x}), {y, x}).width;
  };
  EXPECT_EQ(width(DType::kInt64, 2), 4);  // two vectors of 16 bytes
  EXPECT_EQ(width(DType::kInt64, 1), 1);
  EXPECT_EQ(width(DType::kUInt8, 4), 4);
  EXPECT_EQ(width(DType::kUInt8, 2), 1);
}

TEST(PackedLoopTest, LargeLoopsAreCountedIn64Bits) {
  const int64_t n = int64_t{1} << 34;
  const TensorMeta y = floats({n, 2}, {2, 1}), x = floats({n, 1}, {1, 1});
  const PackedLoop packed = pack(make_loop(y.shape, {&y, &x}), {y, x});
  EXPECT_FALSE(packed.small);
  int64_t at[2];
  packed.offsets(2 * n - 1, at);
  EXPECT_EQ(at[0], 2 * n - 1);
  EXPECT_EQ(at[1], n - 1);
}

}  // namespace
}  // namespace tidemark
