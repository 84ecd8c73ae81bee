#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/register.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

TEST(MakeCuda, NamesThatNameNoGpuAreRefusedAlsoWhereThereIsNone) {
  for (const std::string name :
       {"cuda:", "cuda:-1", "cuda:x", "cuda:0x", "cuda0", "sim:cuda:y"}) {
    try {
      make_device(name);
      ADD_FAILURE() << name;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("is not a GPU")) << name;
    }
  }
  EXPECT_THROW(make_device("cuda:4096"), UsageError);
}

TEST(MakeCuda, WithoutOneTheErrorSaysWhy) {
  for (const std::string name : {"cuda", "sim:cuda"}) {
    try {
      EXPECT_EQ(make_device(name)->profile().backend, Backend::kCuda);
      EXPECT_TRUE(built_with_cuda());
    } catch (const NoGpuError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("no CUDA device can be used: "));
      EXPECT_THROW(device_profile(name), NoGpuError);
    }
  }
}

TEST(MakeCuda, ProfilesOfDevicesByTheirNames) {
  EXPECT_EQ(device_profile("cpu").name, "host");
  EXPECT_EQ(device_profile("sim:h100-80gb").name, "h100-80gb");
  EXPECT_THROW(device_profile("gpu"), UsageError);
}

}  // namespace
}  // namespace tidemark
