// Tests the CUDA device on a real GPU. Without one, tests are skipped with the reason.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/gpu_profile.h"
#include "runtime/device/pages.h"
#include "tests/runtime/device/cuda/cuda_memory_contract.h"
#include "tests/support/gpu_kernels_device.h"
#include "tests/support/random_program.h"

namespace tidemark::testing {
namespace {

std::unique_ptr<Device> make() { return make_device("cuda"); }
INSTANTIATE_TEST_SUITE_P(Gpu, CudaMemoryContract, ::testing::Values(&make));

class GpuTest : public CudaMemoryContract {};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuTest, ::testing::Values(&make));

TEST_P(GpuTest, SaysWhatItIs) {
  const DeviceProfile& profile = device_->profile();
  EXPECT_EQ(device_->name(), "cuda:0");
  EXPECT_EQ(profile.backend, Backend::kCuda);
  EXPECT_GT(profile.memory, 1_GiB);
  EXPECT_GT(profile.offload_bandwidth, 1e8);
  EXPECT_GT(profile.reload_bandwidth, 1e8);
  EXPECT_GT(profile.pin_bandwidth, 1e7);
  EXPECT_GT(profile.float32_flops, 1e12);
  EXPECT_GT(profile.memory_bandwidth, 1e10);
  parse_profile(profile_json(profile), "gpu.json");
  EXPECT_EQ(CudaContext::current().gpu(), 0);
  EXPECT_GE(CudaContext::current().compute_capability(), 50);
}

TEST_P(GpuTest, AdoptedMemoryIsPinnedAndGivenBack) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  const Bytes size = kPinChunk + 5_MiB + 3_B;
  const auto memory = map_pages(size);
  const int64_t count = 8 << 20;
  std::byte* const place = memory.get() + kPinChunk.count() - count / 2;  // across two chunks
  for (uint32_t round = 0; round < 2; ++round) {  // pinned again once it has been unpinned
    const auto data = random_bytes(count, round);
    const auto region = device_->adopt(memory, size);
    region->prepare(0_B, size);
    cudaPointerAttributes attributes{};
    for (const std::byte* at : {memory.get(), memory.get() + size.count() - 1}) {
      ASSERT_EQ(cudaPointerGetAttributes(&attributes, at), cudaSuccess);
      EXPECT_EQ(attributes.type, cudaMemoryTypeHost) << "pinned";
    }
    std::memcpy(place, data.data(), data.size());
    device_->synchronize(
        device_->copy(StreamId::kReload, {arena->data(), place, Bytes(count), 0}));
    std::memset(place, 0, data.size());
    EXPECT_EQ(download(arena->data(), count), data);
    device_->synchronize(
        device_->copy(StreamId::kOffload, {place, arena->data(), Bytes(count), 0}));
    EXPECT_EQ(std::memcmp(place, data.data(), data.size()), 0);
  }
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory.get()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

// A driver whose device memory the host can read too, so that host code can stand in for
// kernels while the GPU makes the copies. Where the host may not touch managed memory while the
// GPU runs, the memory is pinned host memory, which is slower.
class SharedMemoryDriver final : public CudaDriver {
 public:
  explicit SharedMemoryDriver(std::shared_ptr<CudaDriver> real) : real_(std::move(real)) {
    cudaDeviceGetAttribute(&managed_, cudaDevAttrConcurrentManagedAccess, 0);
  }
  DriverStatus allocate(DriverMemory kind, void** out, size_t bytes) override {
    if (kind == DriverMemory::kPinned || managed_ == 0) {
      return real_->allocate(DriverMemory::kPinned, out, bytes);
    }
    return {static_cast<int>(cudaMallocManaged(out, bytes))};
  }
  std::string describe(DriverStatus status) const override { return real_->describe(status); }
  DriverStatus use() override { return real_->use(); }
  DriverStatus properties(GpuProperties* out) override { return real_->properties(out); }
  int host_node() override { return real_->host_node(); }
  DriverStatus memory_info(Bytes* free, Bytes* total) override {
    return real_->memory_info(free, total);
  }
  DriverStatus last_error() override { return real_->last_error(); }
  void warm_up() override { real_->warm_up(); }
  DriverStatus create_stream(DriverStream* out) override { return real_->create_stream(out); }
  DriverStatus destroy_stream(DriverStream s) override { return real_->destroy_stream(s); }
  DriverStatus synchronize_stream(DriverStream s) override {
    return real_->synchronize_stream(s);
  }
  DriverStatus create_event(DriverEvent* out, bool timed) override {
    return real_->create_event(out, timed);
  }
  DriverStatus destroy_event(DriverEvent e) override { return real_->destroy_event(e); }
  DriverStatus record(DriverEvent e, DriverStream s) override { return real_->record(e, s); }
  DriverStatus query(DriverEvent e) override { return real_->query(e); }
  DriverStatus synchronize_event(DriverEvent e) override { return real_->synchronize_event(e); }
  DriverStatus wait(DriverStream s, DriverEvent e) override { return real_->wait(s, e); }
  DriverStatus elapsed_ms(float* out, DriverEvent a, DriverEvent b) override {
    return real_->elapsed_ms(out, a, b);
  }
  DriverStatus copy(void* to, const void* from, size_t bytes, DriverStream s) override {
    return real_->copy(to, from, bytes, s);
  }
  DriverStatus move(void* to, const void* from, size_t bytes, DriverStream s) override {
    return real_->move(to, from, bytes, s);
  }
  DriverStatus fill(void* to, std::byte value, size_t bytes, DriverStream s) override {
    return real_->fill(to, value, bytes, s);
  }
  DriverStatus launch_host_func(DriverStream s, void (*run)(void*), void* argument) override {
    return real_->launch_host_func(s, run, argument);
  }
  DriverStatus create_counter(std::atomic<uint32_t>** out) override {
    return real_->create_counter(out);
  }
  DriverStatus destroy_counter(std::atomic<uint32_t>* counter) override {
    return real_->destroy_counter(counter);
  }
  DriverStatus wait_counter(DriverStream s, std::atomic<uint32_t>* counter,
                            uint32_t least) override {
    return real_->wait_counter(s, counter, least);
  }
  DriverStatus free(DriverMemory kind, void* address) override {
    return real_->free(managed_ == 0 ? DriverMemory::kPinned : kind, address);
  }
  DriverStatus pin(void* address, size_t bytes) override { return real_->pin(address, bytes); }
  DriverStatus unpin(void* address) override { return real_->unpin(address); }

 private:
  const std::shared_ptr<CudaDriver> real_;
  int managed_ = 0;  // the host may touch managed memory while the GPU runs
};

TEST_P(GpuTest, TheRandomProgramEqualsTheUnmanagedRunToTheBit) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const std::vector<uint64_t> expected = unmanaged_random_program(seed, 2, 50);
    SessionOptions options;
    options.threads = 1;
    options.policy = "delta";
    options.delta.early_start = 0.5;
    options.residency.poison = true;
    for (const bool disk : {false, true}) {
      (disk ? options.disk_limit : options.host_limit) = 64_MiB;
      for (const Bytes budget : {kRandomProgramSmallest, kRandomProgramSmallest * 2}) {
        options.budget = budget;
        auto device =
            make_cuda_device_on(std::make_shared<SharedMemoryDriver>(make_cuda_driver(0)),
                                "cuda:0", device_->profile());
        Session session(options,
                        std::make_unique<GpuKernelsDevice>(std::move(device), nullptr));
        ASSERT_EQ(run_random_program(session, seed, 2, 50), expected)
            << "seed " << seed << ", budget " << budget.count() << (disk ? ", disk" : "");
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::testing
