#include "runtime/core/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tidemark {
namespace {

TEST(DType, SizesAreThoseOfTheCppTypes) {
  EXPECT_EQ(size_of(dtype_of<float>()), Bytes(sizeof(float)));
  EXPECT_EQ(size_of(dtype_of<int64_t>()), Bytes(sizeof(int64_t)));
  EXPECT_EQ(size_of(dtype_of<int32_t>()), Bytes(sizeof(int32_t)));
  EXPECT_EQ(size_of(dtype_of<uint8_t>()), Bytes(sizeof(uint8_t)));
  EXPECT_EQ(size_of(dtype_of<bool>()), Bytes(sizeof(bool)));
  EXPECT_EQ(size_of(dtype_of<BFloat16>()), Bytes(sizeof(BFloat16)));
  EXPECT_EQ(size_of(DType::kFloat16), Bytes(2));
}

TEST(DType, HasAName) {
  EXPECT_EQ(to_string(DType::kFloat32), "float32");
  EXPECT_EQ(to_string(dtype_of<int64_t>()), "int64");
  EXPECT_EQ(to_string(dtype_of<bool>()), "bool");
}

}  // namespace
}  // namespace tidemark
