#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/register.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

TEST(MakeCuda, NamesThatNameNoGpuAreRefused) {
  for (const std::string name :
       {"cuda:", "cuda:-1", "cuda:x", "cuda:0x", "cuda0", "cuda:4096"}) {
    EXPECT_THROW(make_device(name), UsageError) << name;
  }
}

TEST(MakeCuda, WithoutOneTheErrorSaysWhy) {
  try {
    EXPECT_EQ(make_device("cuda")->name(), "cuda:0");
    EXPECT_TRUE(built_with_cuda());
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no CUDA device"));
  }
}

}  // namespace
}  // namespace tidemark
