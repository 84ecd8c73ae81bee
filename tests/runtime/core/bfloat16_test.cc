#include "runtime/core/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tidemark {
namespace {

float rounded(float value) { return BFloat16(value); }

TEST(BFloat16, HoldsEveryPatternOfItsOwn) {
  for (uint32_t bits = 0; bits < 1U << 16; ++bits) {
    const auto value = std::bit_cast<float>(bits << 16);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(rounded(value)));
    } else {
      EXPECT_EQ(BFloat16(value).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(rounded(1.001F), 1);
  EXPECT_EQ(rounded(1.005F), 1.0078125F);
  EXPECT_EQ(rounded(1.00390625F), 1);          // between 1 and 1 + 2^-7
  EXPECT_EQ(rounded(1.01171875F), 1.015625F);  // between 1 + 2^-7 and 1 + 2^-6
  EXPECT_EQ(rounded(-1.0039064F), -1.0078125F);
}

TEST(BFloat16, KeepsWhatIsNoOrdinaryNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rounded(infinity), infinity);
  EXPECT_EQ(rounded(-infinity), -infinity);
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), infinity);
  EXPECT_TRUE(std::signbit(rounded(-0.0F)));
  // A NaN with a payload in the lower half only.
  EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(0x7F800001U))));
  EXPECT_EQ(rounded(0x1p-133F), 0x1p-133F);  // the smallest positive number
}

}  // namespace
}  // namespace tidemark
