#include "ops/kernels/strided.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <vector>

namespace tidemark {
namespace {

TensorMeta meta(const Shape& shape, const Shape& strides) {
  return {DType::kFloat32, shape, strides, 0};
}

TEST(StridedTest, GaplessOperandsBecomeOneFlatLoop) {
  const TensorMeta x = TensorMeta::contiguous(DType::kFloat32, {2, 1, 3, 4});
  const StridedLoop loop = make_loop(x.shape, {&x, &x});
  EXPECT_TRUE(loop.flat(2));
  EXPECT_EQ(loop.elements, 24);
  EXPECT_EQ(loop.extents[0], 24);
}

TEST(StridedTest, DimensionsMergeWhereAllOperandsAllow) {
  const TensorMeta y = TensorMeta::contiguous(DType::kFloat32, {2, 3, 4, 5});
  const TensorMeta row = TensorMeta::contiguous(DType::kFloat32, {4, 5});
  const StridedLoop loop = make_loop(y.shape, {&y, &row});
  EXPECT_EQ(loop.rank, 2u);  // (2 3, 4 5)
  EXPECT_EQ(loop.extents[0], 6);
  EXPECT_EQ(loop.extents[1], 20);
  EXPECT_EQ(loop.strides[1][0], 0);
  EXPECT_EQ(loop.strides[1][1], 1);
  EXPECT_FALSE(loop.flat(2));
}

TEST(StridedTest, OffsetsFollowTheStrides) {
  const TensorMeta x = meta({3, 2}, {1, 3});
  const StridedLoop loop = make_loop(x.shape, {&x});
  const int64_t expected[] = {0, 3, 1, 4, 2, 5};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(loop.offset(0, i), expected[i]);
}

// Every element is visited once, wherever a chunk begins, for any number of threads.
TEST(StridedTest, AppliesOnceToEachElement) {
  const Shape shape{13, 7, 11, 67};  // above the serial limit
  const TensorMeta y = TensorMeta::contiguous(DType::kFloat32, shape);
  // The same elements in the order (11, 67, 13, 7).
  const TensorMeta x = meta(shape, {7, 1, 67 * 91, 91});
  const StridedLoop loop = make_loop(shape, {&y, &x});
  const int64_t n = shape.elements();
  std::vector<int> visits(static_cast<size_t>(n)), source(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) source[static_cast<size_t>(i)] = static_cast<int>(i);
  const int before = omp_get_max_threads();
  for (int threads : {1, 2, 3, 7}) {
    omp_set_num_threads(threads);
    std::vector<int> target(static_cast<size_t>(n), -1);
    std::fill(visits.begin(), visits.end(), 0);
    apply(
        loop, [&](int& to, const int& from) { to = from, ++visits[static_cast<size_t>(from)]; },
        target.data(), static_cast<const int*>(source.data()));
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(visits[static_cast<size_t>(i)], 1);
      ASSERT_EQ(target[static_cast<size_t>(i)], loop.offset(1, i));
    }
  }
  omp_set_num_threads(before);
}

TEST(ParallelForTest, ChunksCoverTheRangeOnce) {
  const int before = omp_get_max_threads();
  for (int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    for (int64_t n : {0, 1, 15, 16, 17, 1000, 4096, 5000, 100003}) {
      for (int64_t grain : {1, 16, 4096}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
        parallel_chunks(n, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        for (const auto& count : visits) ASSERT_EQ(count, 1) << n << ' ' << grain;
      }
    }
  }
  omp_set_num_threads(before);
}

TEST(ParallelForTest, SmallWorkStaysOnTheCallingThread) {
  int calls = 0;
  parallel_chunks(1000, 1000, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1000);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tidemark
