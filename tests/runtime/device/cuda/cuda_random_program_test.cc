// The runtime's random program on the CUDA device, over a driver that delays and reorders, must
// equal the unmanaged run on the CPU to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/device/cuda/cuda_device.h"
#include "tests/support/fake_cuda_driver.h"
#include "tests/support/gpu_kernels_device.h"
#include "tests/support/random_program.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

struct Setting {
  std::string name;
  Bytes host{0};
  Bytes disk{0};
  double early_start = 0;
  bool overlap = true;
  bool evict = true;
  Bytes pinnable{1 << 30};
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

class CudaRandomProgram : public ::testing::TestWithParam<Setting> {};

TEST_P(CudaRandomProgram, EqualsTheUnmanagedRunToTheBit) {
  const Setting& setting = GetParam();
  int64_t released = 0;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const std::vector<uint64_t> expected = unmanaged_random_program(seed, 2, 50);
    SessionOptions options;
    options.threads = 1;
    options.policy = "delta";
    options.host_limit = setting.host;
    options.disk_limit = setting.disk;
    options.delta.early_start = setting.early_start;
    options.residency.overlap = setting.overlap;
    options.residency.evict = setting.evict;
    options.residency.poison = true;
    for (const Bytes budget : {kRandomProgramSmallest, kRandomProgramSmallest * 2}) {
      options.budget = budget;
      const auto fake = std::make_shared<FakeCudaDriver>(FakeCudaOptions{
          .seed = seed, .longest_delay = Nanos(2'000), .pinnable = setting.pinnable});
      {
        auto device = make_cuda_device_on(fake, "cuda:0", load_profile("h100-80gb"),
                                          {.pin_chunk = 16_KiB, .staging = 4_KiB});
        Session session(options, std::make_unique<GpuKernelsDevice>(std::move(device), fake));
        ASSERT_EQ(run_random_program(session, seed, 2, 50), expected)
            << setting.name << ", seed " << seed << ", budget " << budget.count();
        released += releases(session);
      }
      EXPECT_THAT(fake->violations(), ::testing::IsEmpty());
      EXPECT_EQ(fake->live_objects(), 0u);
    }
  }
  EXPECT_GT(released, 0) << "the budgets should have been tight";
}

INSTANTIATE_TEST_SUITE_P(
    Settings, CudaRandomProgram,
    ::testing::Values(Setting{.name = "host", .host = 64_MiB},
                      Setting{.name = "early", .host = 64_MiB, .early_start = 0.5},
                      Setting{.name = "serial_copies", .host = 64_MiB, .overlap = false},
                      Setting{.name = "offload_only", .host = 64_MiB, .evict = false},
                      Setting{.name = "disk", .disk = 64_MiB, .early_start = 0.75},
                      Setting{.name = "host_then_disk", .host = 64_KiB, .disk = 64_MiB},
                      Setting{.name = "little_pinned", .host = 64_MiB, .pinnable = 40_KiB}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tidemark::testing
