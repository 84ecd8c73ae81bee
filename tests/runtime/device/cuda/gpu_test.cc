// Tests the CUDA device on a real GPU. Without one, tests are skipped with the reason.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/gpu_profile.h"
#include "runtime/device/pages.h"
#include "runtime/memory/tier.h"
#include "tests/support/gpu_kernels_device.h"
#include "tests/support/random_program.h"

namespace tidemark::testing {
namespace {

using namespace tidemark::literals;

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      driver_ = make_cuda_driver(0);
      device_ = make_device("cuda");
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static std::vector<std::byte> random_bytes(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  void upload(std::byte* to, const std::vector<std::byte>& data) {
    device_->synchronize(device_->copy(
        StreamId::kReload, {to, data.data(), Bytes(static_cast<int64_t>(data.size())), 0}));
  }
  std::vector<std::byte> download(const std::byte* from, int64_t count) {
    std::vector<std::byte> data(static_cast<size_t>(count));
    device_->synchronize(
        device_->copy(StreamId::kOffload, {data.data(), from, Bytes(count), 0}));
    return data;
  }

  std::shared_ptr<CudaDriver> driver_;
  std::unique_ptr<Device> device_;
};

TEST_F(GpuTest, SaysWhatItIs) {
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

TEST_F(GpuTest, CopiesOfPinnedAndPageableMemory) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  const auto host = device_->map(MemoryKind::kHost, 256_MiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->data()) % 512, 0u);
  for (int64_t count : {int64_t{1}, int64_t{4096}, (int64_t{20} << 20) + 3}) {
    const auto data = random_bytes(count, 5);
    upload(arena->data(), data);
    // Across the boundary of two chunks of pinned memory.
    std::byte* const place = host->data() + kPinChunk.count() - count / 2;
    const Event out =
        device_->copy(StreamId::kOffload, {place, arena->data(), Bytes(count), 1});
    device_->wait(StreamId::kReload, out);
    const Event in =
        device_->copy(StreamId::kReload, {arena->data() + (32 << 20), place, Bytes(count), 2});
    device_->synchronize(in);
    EXPECT_EQ(std::memcmp(place, data.data(), data.size()), 0) << count;
    EXPECT_EQ(download(arena->data() + (32 << 20), count), data) << count;
  }
  EXPECT_EQ(device_->take_completions().size(), 6u);
}

TEST_F(GpuTest, AdoptedMemoryIsPinnedAndGivenBack) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  const Bytes size = kPinChunk + 5_MiB + 3_B;
  const auto memory = map_pages(size);
  const int64_t count = 20 << 20;
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

TEST_F(GpuTest, MovesWithinTheArenaMayOverlap) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  constexpr int64_t kSize = 20 << 20;
  for (int64_t size : {kSize, kSize - 512 + 16, kSize - 5, int64_t{70'001}}) {
    for (int64_t shift :
         {int64_t{512}, int64_t{64 << 10}, (int64_t{64} << 10) + 512, int64_t{5} << 20}) {
      for (bool up : {true, false}) {
        const auto data = random_bytes(size, static_cast<uint32_t>(shift));
        std::byte* const from = arena->data() + (up ? 0 : shift);
        std::byte* const to = arena->data() + (up ? shift : 0);
        upload(from, data);
        device_->synchronize(device_->copy(StreamId::kCompute, {to, from, Bytes(size), 0}));
        ASSERT_EQ(download(to, size), data)
            << size << " by " << shift << (up ? " up" : " down");
      }
    }
  }
}

TEST_F(GpuTest, StreamsAreOrderedByFencesAlone) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  const auto host = device_->map(MemoryKind::kHost, 64_MiB);
  const auto data = random_bytes(32 << 20, 3);
  std::memcpy(host->data(), data.data(), data.size());
  // Each round goes in, across and out. Each copy waits for the one before, the host for the
  // last.
  Event last;
  for (int round = 0; round < 20; ++round) {
    device_->wait(StreamId::kReload, last);
    last = device_->copy(StreamId::kReload, {arena->data(), host->data(), 32_MiB, 1});
    device_->wait(StreamId::kCompute, last);
    last = device_->copy(StreamId::kCompute,
                         {arena->data() + (32 << 20), arena->data(), 32_MiB, 2});
    device_->wait(StreamId::kOffload, last);
    last = device_->copy(StreamId::kOffload,
                         {host->data() + (32 << 20), arena->data() + (32 << 20), 32_MiB, 3});
    device_->wait(StreamId::kCompute, last);
    const Event wiped = device_->enqueue(StreamId::kCompute,
                                         {[to = arena->data() + (32 << 20)](void* stream) {
                                            (void)cudaMemsetAsync(to, 0xDB, 32 << 20,
                                                                  CudaContext::stream(stream));
                                          },
                                          Nanos(0), 4});
    device_->wait(StreamId::kReload, wiped);
  }
  device_->synchronize_all();
  EXPECT_EQ(std::memcmp(host->data() + (32 << 20), data.data(), data.size()), 0);
  EXPECT_GT(device_->stalled(StreamId::kCompute), Nanos(0));
  for (const Completion& done : device_->take_completions()) {
    EXPECT_LE(done.start, done.end);
    EXPECT_LE(done.end, device_->now());
  }
}

TEST_F(GpuTest, HostWorkRunsInStreamOrderAndMayFailAndBeTriedAgain) {
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto host = device_->map(MemoryKind::kHost, 1_MiB);
  const auto data = random_bytes(1 << 20, 8);
  upload(arena->data(), data);
  bool broken = true;
  bool seen = false;
  device_->copy(StreamId::kOffload, {host->data(), arena->data(), 1_MiB, 0});
  device_->enqueue_host(StreamId::kOffload, {[&](void*) {
                                               if (std::exchange(broken, false)) {
                                                 throw std::runtime_error("disk full");
                                               }
                                               seen = std::memcmp(host->data(), data.data(),
                                                                  data.size()) == 0;
                                             },
                                             Nanos(0), 9});
  EXPECT_THROW(device_->synchronize_all(), DeviceError);
  device_->resume();
  device_->synchronize_all();
  EXPECT_TRUE(seen);
}

TEST_F(GpuTest, TheDiskTierGoesThroughStaging) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  const auto tier = make_disk_tier(*device_, 64_MiB);
  const auto data = random_bytes(9'000'001, 4);
  upload(arena->data(), data);
  const Bytes size(static_cast<int64_t>(data.size()));
  const auto place = tier->reserve(size);
  ASSERT_TRUE(place);
  device_->wait(StreamId::kReload, tier->store(place->pieces, arena->data(), size, 1));
  device_->synchronize(tier->load(place->pieces, arena->data() + (32 << 20), size, 2));
  EXPECT_EQ(download(arena->data() + (32 << 20), size.count()), data);
}

TEST_F(GpuTest, TooMuchMemoryIsAnErrorAndTheDeviceGoesOn) {
  EXPECT_THROW(device_->map(MemoryKind::kDevice, Bytes(int64_t{1} << 45)), DeviceError);
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto data = random_bytes(1000, 1);
  upload(arena->data(), data);
  EXPECT_EQ(download(arena->data(), 1000), data);
}

// A driver whose device memory the host can read too, so that host code can stand in for
// kernels while the GPU makes the copies.
class SharedMemoryDriver final : public CudaDriver {
 public:
  explicit SharedMemoryDriver(std::shared_ptr<CudaDriver> real) : real_(std::move(real)) {}
  DriverStatus allocate(DriverMemory kind, void** out, size_t bytes) override {
    if (kind == DriverMemory::kPinned) return real_->allocate(kind, out, bytes);
    return {static_cast<int>(cudaMallocManaged(out, bytes))};
  }
  std::string describe(DriverStatus status) const override { return real_->describe(status); }
  DriverStatus use() override { return real_->use(); }
  DriverStatus properties(GpuProperties* out) override { return real_->properties(out); }
  DriverStatus memory_info(Bytes* free, Bytes* total) override {
    return real_->memory_info(free, total);
  }
  DriverStatus last_error() override { return real_->last_error(); }
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
  DriverStatus free(DriverMemory kind, void* address) override {
    return real_->free(kind, address);
  }
  DriverStatus pin(void* address, size_t bytes) override { return real_->pin(address, bytes); }
  DriverStatus unpin(void* address) override { return real_->unpin(address); }

 private:
  const std::shared_ptr<CudaDriver> real_;
};

TEST_F(GpuTest, TheRandomProgramEqualsTheUnmanagedRunToTheBit) {
  int concurrent = 0;
  cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0);
  if (concurrent == 0) GTEST_SKIP() << "host and GPU cannot share memory here";
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
        auto device = make_cuda_device_on(std::make_shared<SharedMemoryDriver>(driver_),
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
