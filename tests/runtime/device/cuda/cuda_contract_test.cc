// Every device's contracts, for the CUDA device over a driver that delays and reorders.
#include <gtest/gtest.h>

#include "runtime/device/cuda/cuda_device.h"
#include "tests/runtime/device/cuda/cuda_memory_contract.h"
#include "tests/runtime/device/device_failure_contract.h"
#include "tests/support/fake_cuda_driver.h"
#include "tests/support/gpu_kernels_device.h"

namespace tidemark {
namespace {

// Checked when the device and its regions are gone.
std::shared_ptr<FakeCudaDriver> make_driver(const FakeCudaOptions& options) {
  return {new FakeCudaDriver(options), [](FakeCudaDriver* driver) {
            EXPECT_THAT(driver->violations(), ::testing::IsEmpty());
            EXPECT_EQ(driver->live_objects(), 0u);
            delete driver;
          }};
}

std::unique_ptr<Device> make_on(const FakeCudaOptions& options, bool kernels) {
  const std::shared_ptr<FakeCudaDriver> fake = make_driver(options);
  CudaDeviceOptions device_options;
  // The contract fills the queues; a ticket is a few commands.
  device_options.commands_beside_host_work = 4 * kMaxInFlight;
  device_options.pin_chunk = Bytes(1 << 20);
  device_options.staging = Bytes(64 << 10);
  auto device = make_cuda_device_on(fake, "cuda:0", load_profile("h100-80gb"), device_options);
  return std::make_unique<GpuKernelsDevice>(std::move(device), kernels ? fake : nullptr);
}

struct Prompt {
  static std::unique_ptr<Device> make() { return make_on({}, true); }
};
struct Delayed {
  static std::unique_ptr<Device> make() {
    return make_on({.seed = 7, .longest_delay = Nanos(2'000)}, true);
  }
};
// All work is host work, which can fail and be tried again.
struct HostWork {
  static std::unique_ptr<Device> make() { return make_on({}, false); }
};
// No host memory can be pinned, so every copy goes through staging memory.
struct Pageable {
  static std::unique_ptr<Device> make() {
    return make_on({.pinnable = Bytes(3 * (64 << 10))}, true);
  }
};
// As in sessions without learnt costs: a simulator beside the device keeps the time.
struct Modelled {
  static std::unique_ptr<Device> make() {
    return make_modelled_device(Delayed::make(), load_profile("h100-80gb"));
  }
};
struct ModelledHostWork {
  static std::unique_ptr<Device> make() {
    return make_modelled_device(HostWork::make(), load_profile("h100-80gb"));
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(CudaPrompt, DeviceContract, Prompt);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaDelayed, DeviceContract, Delayed);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaHostWork, DeviceContract, HostWork);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaPageable, DeviceContract, Pageable);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaModelled, DeviceContract, Modelled);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaHostWork, DeviceFailureContract, HostWork);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaModelledHostWork, DeviceFailureContract, ModelledHostWork);

// With the options that a GPU's device has.
std::unique_ptr<Device> make_full_size() {
  return make_cuda_device_on(make_driver({}), "cuda:0", load_profile("h100-80gb"));
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(FakeGpu, CudaMemoryContract, ::testing::Values(&make_full_size));
}  // namespace testing

}  // namespace tidemark
