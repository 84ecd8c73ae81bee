#include "ops/elementwise/compare.h"

#include <cmath>
#include <limits>

#include "ops/view/view.h"
#include "tests/support/gradcheck.h"

namespace tidemark::testing {
namespace {

using CompareTest = SessionTest;
using Flags = std::vector<uint8_t>;

TEST_F(CompareTest, ComparesWithBroadcasting) {
  const Tensor a = from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = from<float>({1, 5, 3}, {3});
  EXPECT_EQ(eq(a, b).dtype(), DType::kBool);
  EXPECT_EQ(to_vector<uint8_t>(eq(a, b)), (Flags{1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(to_vector<uint8_t>(gt(a, b)), (Flags{0, 0, 0, 1, 0, 1}));
}

TEST_F(CompareTest, ComparesIntegers) {
  const Tensor a = from<int64_t>({1, int64_t{1} << 60, 3}, {3});
  const Tensor b = from<int64_t>({1, (int64_t{1} << 60) + 1, 2}, {3});
  EXPECT_EQ(to_vector<uint8_t>(eq(a, b)), (Flags{1, 0, 0}));
  EXPECT_EQ(to_vector<uint8_t>(gt(a, b)), (Flags{0, 0, 1}));
  const Tensor c = from<uint8_t>({250, 3}, {2}), d = from<uint8_t>({3, 3}, {2});
  EXPECT_EQ(to_vector<uint8_t>(gt(c, d)), (Flags{1, 0}));
  EXPECT_THROW(eq(a, c), UsageError);
}

TEST_F(CompareTest, WhereSelects) {
  const Tensor condition = from<uint8_t>({1, 0, 0, 1}, {2, 2}, DType::kBool);
  const Tensor a = from<float>({1, 2}, {2}), b = from<float>({-1, -2}, {2, 1});
  EXPECT_EQ(to_vector(where(condition, a, b)), (std::vector<float>{1, -1, -2, 2}));
  EXPECT_THROW(where(a, a, b), UsageError);
}

TEST_F(CompareTest, WhereGradients) {
  const Tensor condition = from<uint8_t>({1, 0, 0, 1, 1, 0}, {2, 3}, DType::kBool);
  check_gradients([&](std::vector<Tensor> x) { return where(condition, x[0], x[1]); },
                  {{2, 3}, {3}});
  check_gradients([&](std::vector<Tensor> x) { return where(condition, x[0], x[1]); },
                  {{2, 1}, {4, 2, 3}});
}

TEST_F(CompareTest, CastsBetweenAllTypes) {
  const Tensor x = from<float>({0, 1.75, -2.5, 100}, {4});
  EXPECT_EQ(to_vector<int64_t>(cast(x, DType::kInt64)), (std::vector<int64_t>{0, 1, -2, 100}));
  EXPECT_EQ(to_vector<int32_t>(cast(x, DType::kInt32)), (std::vector<int32_t>{0, 1, -2, 100}));
  EXPECT_EQ(to_vector<uint8_t>(cast(x, DType::kBool)), (Flags{0, 1, 1, 1}));
  const Tensor small = from<uint8_t>({0, 3, 255}, {3});
  EXPECT_EQ(to_vector<float>(cast(small, DType::kFloat32)), (std::vector<float>{0, 3, 255}));
  EXPECT_EQ(to_vector<int64_t>(cast(small, DType::kInt64)), (std::vector<int64_t>{0, 3, 255}));
  const Tensor flags = cast(small, DType::kBool);
  EXPECT_EQ(to_vector<uint8_t>(cast(flags, DType::kUInt8)), (Flags{0, 1, 1}));
  EXPECT_EQ(to_vector<float>(cast(flags, DType::kFloat32)), (std::vector<float>{0, 1, 1}));
}

TEST_F(CompareTest, CastsToBfloat16AndBack) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Ties go to even: 1 + 2^-8 down to 1, 1 + 3 * 2^-8 up to 1 + 2^-6.
  const Tensor x =
      from<float>({1.00390625F, 1.01171875F, -3.140625F, 1e30F, 3.4e38F, nan}, {6});
  const Tensor y = cast(x, DType::kBFloat16);
  EXPECT_EQ(y.dtype(), DType::kBFloat16);
  EXPECT_EQ(y.meta().bytes(), Bytes(12));
  const auto back = to_vector(cast(y, DType::kFloat32));
  EXPECT_EQ(std::vector(back.begin(), back.begin() + 3),
            (std::vector<float>{1, 1.015625F, -3.140625F}));
  EXPECT_NEAR(back[3] / 1e30F, 1, 1.0 / 256);
  EXPECT_TRUE(std::isinf(back[4]));
  EXPECT_TRUE(std::isnan(back[5]));
  EXPECT_EQ(to_vector<int64_t>(cast(y, DType::kInt64))[2], -3);
  const Tensor whole = cast(from<int64_t>({3, 257}, {2}), DType::kBFloat16);
  EXPECT_EQ(to_vector(cast(whole, DType::kFloat32)), (std::vector<float>{3, 256}));
  EXPECT_EQ(to_vector<uint8_t>(eq(y, y)), (Flags{1, 1, 1, 1, 1, 0}));
}

TEST_F(CompareTest, TheGradientOfACastIsCastBack) {
  const Tensor x = random_leaf({3, 5}, 7);
  const Tensor y = cast(x, DType::kBFloat16);
  const Tensor g = cast(random_tensor({3, 5}, 8), DType::kBFloat16);
  backward(y, g);
  EXPECT_EQ(grad_of(x).dtype(), DType::kFloat32);
  EXPECT_EQ(to_vector(grad_of(x)), to_vector(cast(g, DType::kFloat32)));
  EXPECT_FALSE(requires_grad(cast(x, DType::kInt64)));
}

TEST_F(CompareTest, CastOfStridedAndOfTheSameType) {
  const Tensor x = from<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(to_vector<float>(cast(transpose(x, 0, 1), DType::kFloat32)),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(cast(x, DType::kInt32).storage().get(), x.storage().get());
  EXPECT_THROW(cast(x, DType::kFloat16), UsageError);
}

}  // namespace
}  // namespace tidemark::testing
