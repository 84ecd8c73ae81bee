#include "ops/elementwise/compare.h"

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

TEST_F(CompareTest, CastOfStridedAndOfTheSameType) {
  const Tensor x = from<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(to_vector<float>(cast(transpose(x, 0, 1), DType::kFloat32)),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(cast(x, DType::kInt32).storage().get(), x.storage().get());
  EXPECT_THROW(cast(x, DType::kFloat16), UsageError);
}

}  // namespace
}  // namespace tidemark::testing
