// The loops of every instruction set that this processor has, against the definitions.
#include "ops/attention/tile_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/values.h"

namespace tidemark::attention {
namespace {

using testing::random_values;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kRows = 16, kColumns = 96, kStride = 100, kDepth = 32;
constexpr size_t at(int64_t row, int64_t column, int64_t stride = kStride) {
  return static_cast<size_t>(row * stride + column);
}

class TileLoopsTest : public ::testing::TestWithParam<TileLoops> {
 protected:
  const TileLoops& loops_ = GetParam();
  // Every fourth row sees no columns before some; row 9 sees none.
  static constexpr int64_t kFirstKey = 1000;
  static std::vector<int32_t> make_starts() {
    std::vector<int32_t> starts(kRows, 7);
    for (size_t r = 1; r < starts.size(); r += 4)
      starts[r] = kFirstKey + 31 + static_cast<int32_t>(r);
    starts[9] = kFirstKey + 500;
    return starts;
  }
  const std::vector<int32_t> starts_ = make_starts();
  // A step past the diagonal in the middle of the tile.
  const Tile tile_{kRows, kColumns, kStride, 40, starts_.data(), kFirstKey};
  bool sees(int64_t row, int64_t column) const {
    return column < tile_.open + row && mask_[static_cast<size_t>(column)] == 0 &&
           kFirstKey + column >= starts_[static_cast<size_t>(row)];
  }
  static std::vector<float> make_mask() {
    std::vector<float> mask(kColumns);
    for (size_t c = 0; c < mask.size(); c += 5) mask[c] = -kInfinity;
    return mask;
  }
  const std::vector<float> mask_ = make_mask();
};

TEST_P(TileLoopsTest, Products) {
  constexpr int64_t kM = 24, kN = 64, kK = 37, kA = 40, kB = 70, kC = 66;
  for (const bool transposed : {false, true}) {
    for (const bool add : {false, true}) {
      const auto a = random_values(transposed ? kK * kA : kM * kA, 1);
      const auto b = random_values(kK * kB, 2), before = random_values(kM * kC, 3);
      auto c = before;
      loops_.multiply(kM, kN, kK, a.data(), kA, transposed, b.data(), kB, c.data(), kC, add);
      for (int64_t i = 0; i < kM; ++i) {
        for (int64_t j = 0; j < kC; ++j) {
          double sum = add || j >= kN ? before[at(i, j, kC)] : 0;
          for (int64_t l = 0; l < kK && j < kN; ++l) {
            sum += double{a[transposed ? at(l, i, kA) : at(i, l, kA)]} * b[at(l, j, kB)];
          }
          ASSERT_NEAR(c[at(i, j, kC)], sum, 1e-5) << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(TileLoopsTest, SoftmaxBringsEarlierTilesUpToTheNewLargest) {
  const auto scores = random_values(kRows * kStride, 1, -30, 30);
  auto s = scores;
  std::vector<float> largest(kRows, 2), sum(kRows, 3), output(kRows * kDepth, 4);
  largest[0] = -kInfinity;  // no key so far
  sum[0] = 0;
  loops_.softmax(tile_, s.data(), mask_.data(), largest.data(), sum.data(), output.data(),
                 kDepth);
  for (int64_t row = 0; row < kRows; ++row) {
    const auto r = static_cast<size_t>(row);
    const double before = row == 0 ? -kInfinity : 2;
    double most = before;
    for (int64_t c = 0; c < kColumns; ++c) {
      if (sees(row, c)) most = std::max(most, double{scores[at(row, c)]});
    }
    ASSERT_EQ(largest[r], static_cast<float>(most));
    double total = row == 0 ? 0 : 3 * std::exp(before - most);
    for (int64_t c = 0; c < kColumns; ++c) {
      // From the rounded difference: how a large one rounds is not the loop's doing.
      const float x = scores[at(row, c)] - largest[r];
      const double p = sees(row, c) ? std::exp(double{x}) : 0;
      ASSERT_NEAR(s[at(row, c)], p, 3e-7 * p + 1e-37) << row << ", " << c;
      total += p;
    }
    EXPECT_NEAR(sum[r], total, 1e-6 * total);
    EXPECT_NEAR(output[at(row, kDepth - 1, kDepth)], 4 * std::exp(before - most), 1e-6);
  }
}

TEST_P(TileLoopsTest, ARowWithoutKeysIsZeroAndNotANumberStaysSo) {
  std::vector<float> s(kRows * kStride, 1), none(kColumns, -kInfinity);
  std::vector<float> largest(kRows, -kInfinity), sum(kRows, 0), output(kRows * kDepth, 0);
  loops_.softmax(tile_, s.data(), none.data(), largest.data(), sum.data(), output.data(),
                 kDepth);
  EXPECT_EQ(largest[3], -kInfinity);
  EXPECT_EQ(sum[3], 0);
  EXPECT_EQ(s[at(3, 7)], 0);
  std::fill(s.begin(), s.end(), 1.0F);
  s[at(3, 7)] = std::numeric_limits<float>::quiet_NaN();
  loops_.softmax(tile_, s.data(), mask_.data(), largest.data(), sum.data(), output.data(),
                 kDepth);
  EXPECT_TRUE(std::isnan(sum[3]));
  EXPECT_FALSE(std::isnan(sum[2]));
}

TEST_P(TileLoopsTest, Exponentials) {
  const auto scores = random_values(kRows * kStride, 1, -100, 5);
  const auto shift = random_values(kRows, 2, 0, 5);
  auto s = scores;
  loops_.exponentials(tile_, s.data(), mask_.data(), shift.data());
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const float x = scores[at(row, c)] - shift[static_cast<size_t>(row)];
      const double p = sees(row, c) ? std::exp(double{x}) : 0;
      ASSERT_NEAR(s[at(row, c)], p, 3e-7 * p + 2e-38) << row << ", " << c;
    }
  }
}

TEST_P(TileLoopsTest, DropoutIsByPosition) {
  // A row's blocks cross the lower word's end.
  const Dropout dropout(0.4, int64_t{0x123456789ABCDEF}, 4294967200.0, 1000);
  const DropoutPlace place{5, 2 * kChunkKeys};
  const auto p = random_values(kRows * kStride, 1, 0.1F, 1),
             dp = random_values(kRows * kStride, 2);
  const auto delta = random_values(kRows, 3);
  auto dropped = p, kept = p, ds = dp;
  loops_.drop(tile_, dropped.data(), dropout, place);
  loops_.gradient(tile_, kept.data(), ds.data(), delta.data(), dropout, place);
  int64_t zeros = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const float m = dropout.multiplier(place.row + row, place.first_key + c);
      const size_t i = at(row, c);
      zeros += m == 0;
      ASSERT_EQ(dropped[i], m * p[i]) << row << ", " << c;
      ASSERT_EQ(kept[i], m * p[i]);
      ASSERT_NEAR(ds[i], double{p[i]} * (double{m} * dp[i] - delta[static_cast<size_t>(row)]),
                  1e-6);
    }
  }
  EXPECT_NEAR(static_cast<double>(zeros) / (kRows * kColumns), 0.4, 0.05);
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, TileLoopsTest, ::testing::ValuesIn(all_tile_loops()));

}  // namespace
}  // namespace tidemark::attention
