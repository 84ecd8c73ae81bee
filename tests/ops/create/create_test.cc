#include "ops/create/create.h"

#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using CreateTest = SessionTest;

TEST_F(CreateTest, FillsEveryTypeWithTheValue) {
  EXPECT_EQ(to_vector<float>(full({2, 3}, 1.5)), std::vector<float>(6, 1.5F));
  EXPECT_EQ(to_vector<int64_t>(full({4}, -7, DType::kInt64)), std::vector<int64_t>(4, -7));
  EXPECT_EQ(to_vector<int32_t>(full({4}, 9, DType::kInt32)), std::vector<int32_t>(4, 9));
  EXPECT_EQ(to_vector<uint8_t>(full({4}, 200, DType::kUInt8)), std::vector<uint8_t>(4, 200));
  EXPECT_EQ(to_vector<uint8_t>(full({4}, 1, DType::kBool)), std::vector<uint8_t>(4, 1));
  EXPECT_EQ(to_vector<float>(zeros({100000})), std::vector<float>(100000, 0));
  EXPECT_EQ(to_vector<int64_t>(ones({2}, DType::kInt64)), (std::vector<int64_t>{1, 1}));
}

TEST_F(CreateTest, ScalarsAndEmptyTensors) {
  EXPECT_EQ(full({}, 3).elements(), 1);
  EXPECT_EQ(to_vector(full({}, 3)), std::vector<float>{3});
  EXPECT_EQ(to_vector(zeros({2, 0, 3})).size(), 0u);
}

TEST_F(CreateTest, ArangeCounts) {
  EXPECT_EQ(to_vector<int64_t>(arange(5)), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(0).elements(), 0);
  const std::vector<int64_t> many = to_vector<int64_t>(arange(100000));
  EXPECT_EQ(many.back(), 99999);
}

TEST_F(CreateTest, NegativeExtentsAreNamed) {
  EXPECT_EQ(usage_error([] { zeros({2, -1}); }), "[fill] a negative extent in shape (2, -1)");
  EXPECT_THROW(arange(-1), UsageError);
}

}  // namespace
}  // namespace tidemark::testing
