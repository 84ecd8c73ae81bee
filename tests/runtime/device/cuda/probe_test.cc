#include "runtime/device/cuda/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/gpu_profile.h"
#include "tests/support/fake_cuda_driver.h"

namespace tidemark {
namespace {

using namespace tidemark::literals;
using ::testing::IsEmpty;

TEST(Probe, MeasuresBothWaysAndGivesEverythingBack) {
  FakeCudaDriver driver;
  const LinkProbe links = probe_links(driver, 1_MiB);
  EXPECT_GT(links.offload_bandwidth, 0);
  EXPECT_GT(links.reload_bandwidth, 0);
  EXPECT_GT(links.duplex_offload_bandwidth, 0);
  EXPECT_GT(links.duplex_reload_bandwidth, 0);
  EXPECT_GT(links.pin_bandwidth, 0);
  EXPECT_GE(links.transfer_latency, Nanos(0));
  EXPECT_EQ(driver.live_objects(), 0u);
  EXPECT_THAT(driver.violations(), IsEmpty());
}

TEST(Probe, AnyCallThatFailsThrowsAndLeaksNothing) {
  for (DriverCall call : {DriverCall::kAllocate, DriverCall::kPin, DriverCall::kCreateStream,
                          DriverCall::kCreateEvent, DriverCall::kRecord, DriverCall::kCopy,
                          DriverCall::kSynchronizeEvent, DriverCall::kElapsed}) {
    for (int64_t nth : {1, 2}) {
      FakeCudaDriver driver;
      driver.fail(call, nth, kDriverOutOfMemory);
      EXPECT_THROW(probe_links(driver, 64_KiB), DeviceError);
      EXPECT_EQ(driver.live_objects(), 0u) << static_cast<int>(call) << ", " << nth;
    }
  }
}

TEST(GpuProfile, IsMadeOfWhatTheGpuSaysAndTheProbe) {
  FakeCudaDriver driver({.device_memory = 80_GiB});
  const LinkProbe links{55e9, 50e9, 45e9, 40e9, Nanos(6000), 4e9};
  const DeviceProfile profile = gpu_profile(driver, links);
  EXPECT_EQ(profile.name, "fake-gpu-80-gb");
  EXPECT_EQ(profile.backend, Backend::kCuda);
  EXPECT_EQ(profile.memory, 80_GiB - kCudaReserve);
  // The H100's numbers: the datasheet says 494 and 989 TFLOP/s, 3.35 TB/s.
  EXPECT_NEAR(profile.float32_flops, 132 * 1.98e9 * 2048, 1);
  EXPECT_NEAR(profile.bfloat16_flops / profile.float32_flops, 2, 1e-9);
  EXPECT_NEAR(profile.memory_bandwidth, 3.352e12, 1e9);
  EXPECT_EQ(profile.offload_bandwidth, 55e9);
  EXPECT_EQ(profile.duplex_reload_bandwidth, 40e9);
  EXPECT_EQ(profile.pin_bandwidth, 4e9);
  EXPECT_EQ(profile.transfer_latency, Nanos(6000));
}

TEST(GpuProfile, ItsJsonIsAProfile) {
  FakeCudaDriver driver({.device_memory = 80_GiB});
  const DeviceProfile profile = gpu_profile(driver, {55e9, 50e9, 45e9, 40e9, Nanos(6000), 4e9});
  const DeviceProfile read =
      parse_profile(profile_json(profile, {{"memory_bytes", "measured"}}), "x.json");
  EXPECT_EQ(read.name, profile.name);
  EXPECT_EQ(read.memory, profile.memory);
  EXPECT_EQ(read.float32_flops, profile.float32_flops);
  EXPECT_EQ(read.duplex_offload_bandwidth, profile.duplex_offload_bandwidth);
  EXPECT_EQ(read.pin_bandwidth, 4e9);
  EXPECT_EQ(read.transfer_latency, profile.transfer_latency);
  EXPECT_EQ(read.kernel_floor, profile.kernel_floor);
}

}  // namespace
}  // namespace tidemark
