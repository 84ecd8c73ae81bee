#include "runtime/core/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Shape, HoldsItsExtents) {
  const Shape shape{8, 224, 224, 3};
  EXPECT_EQ(shape.rank(), 4u);
  EXPECT_EQ(std::vector<int64_t>(shape.begin(), shape.end()),
            (std::vector<int64_t>{8, 224, 224, 3}));
  EXPECT_EQ(shape.back(), 3);
  EXPECT_EQ(shape.elements(), 8 * 224 * 224 * 3);
  EXPECT_EQ(shape.to_string(), "(8, 224, 224, 3)");
}

TEST(Shape, ScalarHasOneElementAndAnEmptyExtentNone) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().to_string(), "()");
  EXPECT_EQ((Shape{4, 0, 2}).elements(), 0);
}

TEST(Shape, ElementsDoNotWrapAt32Bits) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).elements(), int64_t{1} << 40);
}

TEST(Shape, EqualityComparesRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE(Shape{}, Shape{0});
  Shape changed{2, 9};
  changed[1] = 3;
  EXPECT_EQ(changed, (Shape{2, 3}));
}

TEST(Shape, RankIsLimited) {
  Shape shape;
  for (int64_t i = 0; i < static_cast<int64_t>(kMaxRank); ++i) shape.push_back(i);
  EXPECT_EQ(shape, (Shape{0, 1, 2, 3, 4, 5}));
  EXPECT_THROW(shape.push_back(6), UsageError);
  EXPECT_EQ(shape.rank(), kMaxRank);
  const std::array<int64_t, kMaxRank + 1> too_many{};
  EXPECT_THROW(Shape{std::span(too_many)}, UsageError);
}

TEST(ContiguousStrides, AreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Shape{});
  EXPECT_EQ(contiguous_strides({1 << 20, 1 << 20}), (Shape{1 << 20, 1}));
}

struct BroadcastCase {
  Shape a;
  Shape b;
  Shape result;
};

TEST(BroadcastShapes, FollowsNumpyBothWaysRound) {
  const std::array cases{
      BroadcastCase{{2, 3}, {2, 3}, {2, 3}},
      BroadcastCase{{2, 3}, {3}, {2, 3}},
      BroadcastCase{{2, 1}, {1, 3}, {2, 3}},
      BroadcastCase{{4, 1, 3}, {5, 1}, {4, 5, 3}},
      BroadcastCase{{}, {7}, {7}},
      BroadcastCase{{}, {}, {}},
      BroadcastCase{{2, 0, 3}, {1, 3}, {2, 0, 3}},
      BroadcastCase{{1}, {0}, {0}},
  };
  for (const auto& [a, b, result] : cases) {
    SCOPED_TRACE(a.to_string() + " with " + b.to_string());
    EXPECT_EQ(broadcast_shapes(a, b), result);
    EXPECT_EQ(broadcast_shapes(b, a), result);
  }
}

TEST(BroadcastShapes, NamesBothWhenTheyDoNot) {
  EXPECT_THAT(
      [] {
        broadcast_shapes({2, 3}, {4});
      },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("(2, 3)"), HasSubstr("(4)"))));
  EXPECT_THROW(broadcast_shapes({0}, {2}), UsageError);
}

}  // namespace
}  // namespace tidemark
