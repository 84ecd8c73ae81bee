#include "bench/convolution_rate.h"

#include <gtest/gtest.h>

#include "runtime/device/profile.h"

namespace tidemark {
namespace {

TEST(ConvolutionRate, OnTheSimulatorItIsWhatTheProfileSays) {
  for (const char* name : {"a100-80gb", "v100-16gb"}) {
    const DeviceProfile profile = load_profile(name);
    const double expected = profile.float32_flops * profile.compute_efficiency;
    EXPECT_NEAR(convolution_rate(std::string("sim:") + name, 32) / expected, 1, 0.01) << name;
  }
}

TEST(ConvolutionRate, OnTheCpuItIsMeasured) {
  const double rate = convolution_rate("cpu", 1);
  EXPECT_GT(rate, 1e6);
  EXPECT_LT(rate, 1e15);
}

}  // namespace
}  // namespace tidemark
