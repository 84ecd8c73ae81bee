#include "ops/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tidemark {
namespace {

TEST(VectorMathTest, IsLibmToAFewUnitsInTheLastPlace) {
  for (float x = -12; x <= 12; x += 0.00037F) {
    const double cdf = 0.5 * std::erfc(-double{x} / std::sqrt(2.0));
    ASSERT_NEAR(normal_cdf<VectorMath>(x), cdf, 1.2e-7 * std::max(cdf, 0.5)) << x;
    const double logistic = 1 / (1 + std::exp(-double{x}));
    ASSERT_NEAR(VectorMath::logistic(x), logistic, 2.5e-7 * logistic) << x;
  }
  for (float x = 0; x > -86.9F; x -= 0.0023F) {
    ASSERT_NEAR(VectorMath::exp_negative(x), std::exp(double{x}), 2e-7 * std::exp(double{x}))
        << x;
  }
}

TEST(VectorMathTest, Ends) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(VectorMath::exp_negative(0), 1);
  EXPECT_NEAR(VectorMath::exp_negative(-kInfinity), 0, 1e-37);
  EXPECT_EQ(normal_cdf<VectorMath>(0), 0.5F);
  EXPECT_EQ(normal_cdf<VectorMath>(kInfinity), 1);
  EXPECT_NEAR(normal_cdf<VectorMath>(-kInfinity), 0, 1e-25);
  EXPECT_EQ(VectorMath::logistic(kInfinity), 1);
  EXPECT_NEAR(VectorMath::logistic(-kInfinity), 0, 1e-37);
  EXPECT_TRUE(std::isnan(VectorMath::exp_negative(kNaN)));
  EXPECT_TRUE(std::isnan(normal_cdf<VectorMath>(kNaN)));
  EXPECT_TRUE(std::isnan(VectorMath::logistic(kNaN)));
}

}  // namespace
}  // namespace tidemark
