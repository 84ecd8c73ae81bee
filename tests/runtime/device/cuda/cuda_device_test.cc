#include "runtime/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "runtime/core/errors.h"
#include "runtime/device/pages.h"
#include "runtime/memory/disk_tier.h"
#include "runtime/memory/tier.h"
#include "tests/runtime/device/device_contract.h"
#include "tests/runtime/memory/faulty_file.h"
#include "tests/support/fake_cuda_driver.h"

namespace tidemark {
// Included for its gates; cuda_contract_test.cc instantiates the contract.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceContract);

namespace {

using namespace tidemark::literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class CudaDeviceTest : public ::testing::Test {
 protected:
  void make(FakeCudaOptions driver = {}, CudaDeviceOptions options = {}) {
    fake_ = std::make_shared<FakeCudaDriver>(driver);
    options.pin_chunk = 64_KiB;
    options.staging = 16_KiB;
    device_ = make_cuda_device_on(fake_, "cuda:0", load_profile("h100-80gb"), options);
  }
  void make_beside_a_model() {
    make();
    DeviceProfile profile = load_profile("h100-80gb");
    profile.pin_bandwidth = 1'024'000;  // a KiB in a millisecond
    device_ = make_modelled_device(std::move(device_), profile);
  }
  void TearDown() override {
    device_.reset();
    if (!fake_) return;
    EXPECT_THAT(fake_->violations(), IsEmpty());
    EXPECT_EQ(fake_->live_objects(), 0u);
  }

  // A kernel on the fake GPU.
  Work kernel(std::function<void()> run, uint64_t tag = 0) {
    return {
        [fake = fake_.get(), run = std::move(run)](void* native) { fake->launch(native, run); },
        Nanos(1000), tag};
  }
  Work gated(Gate& gate, uint64_t tag = 0) {
    return kernel([wait = gate.work()] { wait.run(nullptr); }, tag);
  }
  // Compute waits for host work that goes on once `gate` is open, and then fails while
  // `broken`.
  void hold_compute(Gate& gate, const std::atomic<bool>& broken) {
    device_->wait(StreamId::kCompute,
                  device_->enqueue_host(StreamId::kOffload, work_that([&gate, &broken] {
                                          gate.work().run(nullptr);
                                          if (broken) throw std::runtime_error("disk full");
                                        })));
  }
  static std::vector<std::byte> pattern(int64_t bytes, int salt = 1) {
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<std::byte>((i * 2654435761u >> 11) + static_cast<size_t>(salt));
    }
    return data;
  }
  std::string error_of(const std::function<void()>& run) {
    try {
      run();
    } catch (const DeviceError& error) {
      return error.what();
    }
    ADD_FAILURE() << "no DeviceError";
    return "";
  }

  std::shared_ptr<FakeCudaDriver> fake_;
  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceTest, KernelsAreIssuedByTheCallerAndGetTheStream) {
  make();
  std::vector<void*> streams;
  for (StreamId stream : kAllStreams) {
    device_->enqueue(stream, {[&](void* native) { streams.push_back(native); }, Nanos(0), 0});
  }
  ASSERT_EQ(streams.size(), 3u);
  std::sort(streams.begin(), streams.end());
  EXPECT_EQ(std::unique(streams.begin(), streams.end()), streams.end());
  EXPECT_NE(streams.front(), nullptr);
}

TEST_F(CudaDeviceTest, WorkThatNobodyTimesOrWaitsForRecordsNoEvent) {
  make();
  const int64_t before = fake_->calls(DriverCall::kRecord);
  for (int i = 0; i < 100; ++i) device_->enqueue(StreamId::kCompute, kernel([] {}));
  EXPECT_EQ(fake_->calls(DriverCall::kRecord), before);
  device_->synchronize_all();
  EXPECT_EQ(fake_->calls(DriverCall::kRecord), before + 1);
}

TEST_F(CudaDeviceTest, AWaitForTheMiddleOfALongQueueIsNotForItsEnd) {
  make();
  Gate gate;
  const int64_t before = fake_->calls(DriverCall::kRecord);
  for (int i = 0; i < 300; ++i) device_->enqueue(StreamId::kCompute, kernel([] {}));
  ASSERT_EQ(fake_->calls(DriverCall::kRecord), before + 1);
  const Event middle{StreamId::kCompute, 200};
  device_->enqueue(StreamId::kCompute, gated(gate, 0));
  device_->synchronize(middle);
  EXPECT_FALSE(device_->done(Event{StreamId::kCompute, 301}));
  gate.open();
}

TEST_F(CudaDeviceTest, TimedWorkBehindTimedWorkTakesOneEvent) {
  make();
  Gate gate;
  device_->enqueue(StreamId::kCompute, gated(gate, 1));
  const int64_t before = fake_->calls(DriverCall::kRecord);
  for (uint64_t tag = 2; tag <= 50; ++tag) {
    device_->enqueue(StreamId::kCompute, kernel([] {}, tag));
  }
  EXPECT_EQ(fake_->calls(DriverCall::kRecord), before + 49);
  gate.open();
  device_->synchronize_all();
  const auto completions = device_->take_completions();
  ASSERT_EQ(completions.size(), 50u);
  for (size_t i = 1; i < completions.size(); ++i) {
    EXPECT_EQ(completions[i].start, completions[i - 1].end);
  }
}

TEST_F(CudaDeviceTest, EventsAreUsedAgain) {
  make();
  for (int round = 0; round < 50; ++round) {
    for (uint64_t tag = 1; tag <= 20; ++tag) {
      device_->wait(StreamId::kOffload,
                    device_->enqueue(StreamId::kCompute, kernel([] {}, tag)));
      device_->enqueue(StreamId::kOffload, kernel([] {}, 100 + tag));
    }
    device_->synchronize_all();
    EXPECT_EQ(device_->take_completions().size(), 40u);
  }
  EXPECT_LE(fake_->calls(DriverCall::kCreateEvent), 200);
}

TEST_F(CudaDeviceTest, AWaitForTimedWorkDoesNotWaitForWhatFollowsIt) {
  //   reload   | 1 | ===== 2 =====
  //   compute      | 3 |
  make();
  Gate gate;
  const Event first = device_->enqueue(StreamId::kReload, kernel([] {}, 1));
  device_->enqueue(StreamId::kReload, gated(gate, 2));
  device_->wait(StreamId::kCompute, first);
  device_->synchronize(device_->enqueue(StreamId::kCompute, kernel([] {}, 3)));
  EXPECT_FALSE(gate.is_open());
}

TEST_F(CudaDeviceTest, AStallIsTheTimeWithWorkOfItsOwnToDo) {
  make();
  Gate gate;
  const Event copy = device_->enqueue(StreamId::kReload, gated(gate, 1));
  device_->wait(StreamId::kCompute, copy);
  device_->enqueue(StreamId::kCompute, kernel([] {}, 2));
  gate.open();
  device_->synchronize_all();
  EXPECT_GT(device_->stalled(StreamId::kCompute), Nanos(0));
  EXPECT_LE(device_->stalled(StreamId::kCompute), device_->now());
  EXPECT_EQ(device_->stalled(StreamId::kReload), Nanos(0));
  const auto done = completions_by_tag(*device_);
  EXPECT_GE(done.at(2).start, done.at(1).end) << "the stall is not part of the work";
}

TEST_F(CudaDeviceTest, PiecesOfOneTagAreOneCompletion) {
  make();
  for (int i = 0; i < 3; ++i) device_->enqueue(StreamId::kOffload, kernel([] {}, 5));
  device_->enqueue(StreamId::kReload, kernel([] {}, 6));
  device_->enqueue_host(StreamId::kOffload, work_that([] {}, 5));
  device_->synchronize_all();
  EXPECT_EQ(device_->take_completions().size(), 2u);
}

TEST_F(CudaDeviceTest, DeviceMemoryIsAskedForExactly) {
  make({.device_memory = 1_MiB});
  const auto region = device_->map(MemoryKind::kDevice, Bytes(1000));
  EXPECT_EQ(fake_->device_bytes(), Bytes(1000));
  const std::string what = error_of([&] { device_->map(MemoryKind::kDevice, 2_MiB); });
  EXPECT_THAT(what, HasSubstr("device memory on cuda:0"));
  EXPECT_THAT(what, HasSubstr("2.0 MiB (2097152 bytes)"));
  EXPECT_THAT(what, HasSubstr("free of 1.0 MiB"));
  const std::string host =
      error_of([&] { device_->map(MemoryKind::kHost, Bytes(int64_t{1} << 60)); });
  EXPECT_THAT(host, HasSubstr("host memory"));
}

TEST_F(CudaDeviceTest, HostMemoryIsPinnedAsItIsReached) {
  make();
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto host = device_->map(MemoryKind::kHost, 1_MiB);
  EXPECT_EQ(fake_->pinned(), 0_B);
  device_->copy(StreamId::kOffload, {host->data() + 100, arena->data(), 64_KiB, 0});
  EXPECT_EQ(fake_->pinned(), 128_KiB) << "two chunks";
  EXPECT_EQ(fake_->calls(DriverCall::kCopy), 2) << "no copy straddles them";
  device_->copy(StreamId::kOffload, {host->data(), arena->data(), 128_KiB, 0});
  EXPECT_EQ(fake_->pinned(), 128_KiB);
  device_->synchronize_all();
}

TEST_F(CudaDeviceTest, HostMemoryIsOfHugePagesNearTheGpu) {
  for (const int node : {-1, 0}) {
    make({.host_node = node});
    const auto host = device_->map(MemoryKind::kHost, 5_MiB);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(host->data()) % (2 << 20), 0u);
    int policy = MPOL_DEFAULT;
    if (syscall(SYS_get_mempolicy, &policy, nullptr, 0, host->data(), MPOL_F_ADDR) == 0) {
      EXPECT_EQ(policy, node < 0 ? MPOL_DEFAULT : MPOL_PREFERRED);
    }
  }
}

TEST_F(CudaDeviceTest, PreparedHostMemoryIsPinnedOnceAndNotByTheCopy) {
  make();
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto host = device_->map(MemoryKind::kHost, 160_KiB);
  host->prepare(100_B, 0_B);
  EXPECT_EQ(fake_->pinned(), 0_B);
  for (int turn = 0; turn < 2; ++turn) {
    host->prepare(100_B, 64_KiB);
    EXPECT_EQ(fake_->pinned(), 128_KiB) << "two chunks";
    EXPECT_EQ(fake_->calls(DriverCall::kPin), 2);
  }
  device_->copy(StreamId::kOffload, {host->data() + 100, arena->data(), 64_KiB, 0});
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 2);
  host->prepare(0_B, 160_KiB);
  EXPECT_EQ(fake_->pinned(), 160_KiB) << "the last chunk is what is left";
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 3);
  EXPECT_THROW(host->prepare(160_KiB, 1_B), std::logic_error);
  arena->prepare(0_B, 1_MiB);
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 3);
  device_->synchronize_all();
}

TEST_F(CudaDeviceTest, WhatCannotBePinnedIsTriedOnce) {
  make({.pinnable = 64_KiB + 16_KiB * 2});
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto host = device_->map(MemoryKind::kHost, 256_KiB);
  host->prepare(0_B, 256_KiB);
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 4);
  EXPECT_EQ(fake_->pinned(), 64_KiB);
  const auto data = pattern(200'000);
  std::memcpy(arena->data(), data.data(), data.size());
  device_->synchronize(
      device_->copy(StreamId::kOffload, {host->data(), arena->data(), Bytes(200'000), 1}));
  EXPECT_EQ(std::memcmp(host->data(), data.data(), data.size()), 0);
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 4);
}

TEST_F(CudaDeviceTest, NothingIsPinnedWhileAStreamIsHeld) {
  make();
  const auto host = device_->map(MemoryKind::kHost, 64_KiB);
  std::atomic<bool> broken{true};
  const Event io = device_->enqueue_host(StreamId::kOffload, work_that([&] {
                                           if (broken) throw std::runtime_error("disk full");
                                         }));
  EXPECT_THROW(device_->synchronize(io), DeviceError);
  host->prepare(0_B, 64_KiB);
  EXPECT_EQ(fake_->pinned(), 0_B);
  broken = false;
  device_->resume();
  device_->synchronize(io);
  host->prepare(0_B, 64_KiB);
  EXPECT_EQ(fake_->pinned(), 64_KiB);
}

TEST_F(CudaDeviceTest, PreparingMemoryOfALostGpuDoesNothing) {
  make();
  const auto host = device_->map(MemoryKind::kHost, 64_KiB);
  fake_->lose_gpu(kDriverLaunchFailure);
  host->prepare(0_B, 64_KiB);
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 0);
}

TEST_F(CudaDeviceTest, WithAModelBesideItMemoryIsPreparedOnBoth) {
  make_beside_a_model();
  const auto host = device_->map(MemoryKind::kHost, 160_KiB);
  for (int turn = 0; turn < 2; ++turn) {
    host->prepare(0_B, 1_KiB);
    EXPECT_EQ(fake_->pinned(), 64_KiB);
    EXPECT_EQ(device_->modelled_now(), Nanos(160'000'000)) << "its chunks are larger";
  }
}

TEST_F(CudaDeviceTest, AdoptedMemoryIsCopiedDirectly) {
  make();
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const Bytes size = 160_KiB + 5_B;
  const auto memory = map_pages(size);
  auto region = device_->adopt(memory, size);
  EXPECT_EQ(fake_->pinned(), 0_B);
  const int64_t allocated = fake_->calls(DriverCall::kAllocate);
  const auto data = pattern(size.count());
  std::memcpy(memory.get(), data.data(), data.size());
  device_->synchronize(
      device_->copy(StreamId::kReload, {arena->data(), memory.get() + 100, 64_KiB, 0}));
  EXPECT_EQ(std::memcmp(arena->data(), data.data() + 100, 64 << 10), 0);
  EXPECT_EQ(fake_->pinned(), 128_KiB) << "two chunks";
  EXPECT_EQ(fake_->calls(DriverCall::kCopy), 2) << "no copy straddles them";

  region->prepare(0_B, size);
  EXPECT_EQ(fake_->pinned(), 164_KiB) << "as far as the last page goes";
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 3) << "each once";
  const Event loaded = device_->copy(StreamId::kReload, {arena->data(), memory.get(), size, 0});
  device_->synchronize(loaded);
  std::memset(memory.get(), 0, data.size());
  device_->synchronize(
      device_->copy(StreamId::kOffload, {memory.get(), arena->data(), size, 0}));
  EXPECT_EQ(std::memcmp(memory.get(), data.data(), data.size()), 0);
  EXPECT_EQ(fake_->calls(DriverCall::kCopy), 2 + 3 + 3);
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 3);
  EXPECT_EQ(fake_->calls(DriverCall::kLaunchHostFunc), 0);
  EXPECT_EQ(fake_->calls(DriverCall::kAllocate), allocated) << "no staging";

  region.reset();
  EXPECT_EQ(fake_->pinned(), 0_B);
  EXPECT_EQ(fake_->calls(DriverCall::kUnpin), 3);
  device_->synchronize(device_->copy(StreamId::kReload, {arena->data(), memory.get(), 8_B, 0}));
  EXPECT_EQ(fake_->calls(DriverCall::kLaunchHostFunc), 1) << "it is as any memory now";
}

TEST_F(CudaDeviceTest, AdoptedMemoryThatCannotBePinnedIsCopiedAllTheSame) {
  make({.pinnable = 64_KiB + 16_KiB * 2});
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto memory = map_pages(256_KiB);
  const auto region = device_->adopt(memory, 256_KiB);
  region->prepare(0_B, 256_KiB);
  EXPECT_EQ(fake_->pinned(), 64_KiB);
  const auto data = pattern(200'000);
  std::memcpy(memory.get(), data.data(), data.size());
  device_->synchronize(
      device_->copy(StreamId::kReload, {arena->data(), memory.get(), Bytes(200'000), 0}));
  EXPECT_EQ(std::memcmp(arena->data(), data.data(), data.size()), 0);
  std::memset(memory.get(), 0, data.size());
  device_->synchronize(
      device_->copy(StreamId::kOffload, {memory.get(), arena->data(), Bytes(200'000), 0}));
  EXPECT_EQ(std::memcmp(memory.get(), data.data(), data.size()), 0);
  EXPECT_EQ(fake_->calls(DriverCall::kPin), 4) << "each chunk is tried once";
}

// Unpinning may wait for work in the streams: forever, behind host work that fails.
TEST_F(CudaDeviceTest, NothingIsUnpinnedBesideHostWork) {
  make();
  std::shared_ptr<std::byte> memory = map_pages(64_KiB);
  const std::weak_ptr<std::byte> there = memory;
  auto adopted = device_->adopt(std::move(memory), 64_KiB);
  auto mapped = device_->map(MemoryKind::kHost, 64_KiB);
  adopted->prepare(0_B, 64_KiB);
  mapped->prepare(0_B, 64_KiB);
  std::atomic<bool> broken{true};
  const Event io = device_->enqueue_host(StreamId::kOffload, work_that([&] {
                                           if (broken) throw std::runtime_error("disk full");
                                         }));
  EXPECT_THROW(device_->synchronize(io), DeviceError);
  adopted.reset();
  mapped.reset();
  EXPECT_EQ(fake_->calls(DriverCall::kUnpin), 0);
  EXPECT_FALSE(there.expired()) << "what is pinned is there";
  broken = false;
  device_->resume();
  device_->synchronize(io);
  EXPECT_EQ(fake_->pinned(), 0_B);
  EXPECT_TRUE(there.expired());
}

TEST_F(CudaDeviceTest, WhatIsStillPinnedIsUnpinnedWithTheDevice) {
  make();
  auto region = device_->adopt(map_pages(64_KiB), 64_KiB);
  region->prepare(0_B, 64_KiB);
  const Event io = device_->enqueue_host(
      StreamId::kOffload, work_that([] { throw std::runtime_error("disk full"); }));
  EXPECT_THROW(device_->synchronize(io), DeviceError);
  const auto other = device_->map(MemoryKind::kHost, 64_KiB);
  region.reset();
  EXPECT_EQ(fake_->pinned(), 64_KiB);
  device_.reset();
  EXPECT_EQ(fake_->pinned(), 0_B) << "not only with the last region";
}

TEST_F(CudaDeviceTest, WithAModelBesideItAdoptedMemoryIsPreparedOnBoth) {
  make_beside_a_model();
  const auto arena = device_->map(MemoryKind::kDevice, 160_KiB);
  const auto memory = map_pages(160_KiB);
  const auto region = device_->adopt(memory, 160_KiB);
  EXPECT_EQ(region->data(), memory.get());
  region->prepare(0_B, 160_KiB);
  EXPECT_EQ(fake_->pinned(), 160_KiB);
  EXPECT_EQ(device_->modelled_now(), Nanos(160'000'000));
  device_->synchronize(
      device_->copy(StreamId::kReload, {arena->data(), memory.get(), 160_KiB, 0}));
  EXPECT_EQ(fake_->calls(DriverCall::kLaunchHostFunc), 0);
}

TEST_F(CudaDeviceTest, CopiesAreRightWhateverTheHostMemoryIs) {
  // Chunks 0 and 1 of the host region can be pinned, the others cannot; a vector never can.
  make({.pinnable = 64_KiB * 2 + 16_KiB * 2});
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto host = device_->map(MemoryKind::kHost, 320_KiB);
  const auto in = pattern(300'001);
  const Bytes size(300'001);
  std::memcpy(host->data(), in.data(), in.size());
  std::vector<std::byte> back(in.size());
  const Event loaded =
      device_->copy(StreamId::kReload, {arena->data() + 512, host->data(), size, 1});
  device_->wait(StreamId::kOffload, loaded);
  device_->synchronize(
      device_->copy(StreamId::kOffload, {back.data(), arena->data() + 512, size, 2}));
  EXPECT_EQ(back, in);

  const auto again = pattern(300'001, 9);
  const Event uploaded =
      device_->copy(StreamId::kReload, {arena->data(), again.data(), size, 3});
  device_->wait(StreamId::kOffload, uploaded);
  device_->synchronize(
      device_->copy(StreamId::kOffload, {host->data(), arena->data(), size, 4}));
  EXPECT_EQ(std::memcmp(host->data(), again.data(), again.size()), 0);
  EXPECT_EQ(completions_by_tag(*device_).size(), 4u);
}

TEST_F(CudaDeviceTest, WithoutPinnedMemoryForStagingACopySaysSo) {
  make({.pinnable = 8_KiB});
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  std::vector<std::byte> user(1000);
  const std::string what = error_of([&] {
    device_->copy(StreamId::kOffload, {user.data(), arena->data(), Bytes(1000), 0});
  });
  EXPECT_THAT(what, HasSubstr("cannot allocate 16.0 KiB (16384 bytes) of pinned host memory"));
  EXPECT_THAT(what, HasSubstr("copy on the offload stream"));
}

TEST_F(CudaDeviceTest, MovesWithinTheArenaMayOverlap) {
  make();
  constexpr int64_t kSize = 2 << 20;
  const auto arena = device_->map(MemoryKind::kDevice, Bytes(2 * kSize));
  for (int64_t size : {kSize, kSize - 7, int64_t{512}, int64_t{3}}) {
    for (int64_t shift :
         {int64_t{512}, int64_t{64 << 10}, int64_t{300 << 10}, int64_t{1} << 20}) {
      for (bool up : {true, false}) {
        const auto data = pattern(size, static_cast<int>(shift));
        std::byte* const from = arena->data() + (up ? 0 : shift);
        std::byte* const to = arena->data() + (up ? shift : 0);
        std::memcpy(from, data.data(), data.size());
        device_->synchronize(device_->copy(StreamId::kCompute, {to, from, Bytes(size), 0}));
        EXPECT_EQ(std::memcmp(to, data.data(), data.size()), 0) << size << " by " << shift;
      }
    }
  }
}

TEST_F(CudaDeviceTest, AMoveTakesFewCommands) {
  make();
  const auto most = static_cast<int64_t>(kMaxMove);
  const auto arena = device_->map(MemoryKind::kDevice, Bytes(2 * most));
  const auto commands = [&](int64_t size, int64_t shift, DriverCall call) {
    const int64_t before = fake_->calls(call);
    const int64_t others = fake_->calls(DriverCall::kMove) + fake_->calls(DriverCall::kCopy);
    device_->synchronize(device_->copy(StreamId::kCompute,
                                       {arena->data(), arena->data() + shift, Bytes(size), 0}));
    const int64_t all = fake_->calls(DriverCall::kMove) + fake_->calls(DriverCall::kCopy);
    EXPECT_EQ(all - others, fake_->calls(call) - before) << size << " by " << shift;
    return all - others;
  };
  for (int64_t shift : {int64_t{512}, int64_t{64} << 10, int64_t{3} << 20}) {
    EXPECT_EQ(commands(most, shift, DriverCall::kMove), 1) << shift;
    EXPECT_EQ(commands(most + 16, shift, DriverCall::kMove), 2) << shift;
  }
  EXPECT_EQ(commands(10 << 20, 4 << 20, DriverCall::kCopy), 3);

  std::vector<uint32_t> data(static_cast<size_t>(most + 4096) / 4);
  std::iota(data.begin(), data.end(), 0U);
  for (const bool up : {true, false}) {
    std::byte* const from = arena->data() + (up ? 0 : 512);
    std::byte* const to = arena->data() + (up ? 512 : 0);
    std::memcpy(from, data.data(), data.size() * 4);
    device_->synchronize(device_->copy(
        StreamId::kCompute, {to, from, Bytes(static_cast<int64_t>(data.size()) * 4), 0}));
    EXPECT_EQ(std::memcmp(to, data.data(), data.size() * 4), 0) << up;
  }
}

TEST_F(CudaDeviceTest, ALaunchThatIsRefusedThrowsAndIsNotEnqueued) {
  make();
  device_->enqueue(StreamId::kCompute, kernel([] {}));
  const std::string what = error_of([&] {
    device_->enqueue(StreamId::kCompute,
                     {[&](void*) { fake_->refuse_launch({98}); }, Nanos(0), 4});
  });
  EXPECT_THAT(what, HasSubstr("fake error 98"));
  EXPECT_THAT(what, HasSubstr("cuda:0"));
  const std::string kernels = error_of([&] {
    device_->enqueue(StreamId::kCompute,
                     {[](void*) { throw DeviceError("[conv2d] no plan"); }, Nanos(0), 5});
  });
  EXPECT_THAT(kernels, StartsWith("[conv2d] no plan (cuda:0, kernel on the compute stream"));
  device_->resume();
  EXPECT_EQ(device_->enqueue(StreamId::kCompute, kernel([] {})).ticket, 2u);
  device_->synchronize_all();
  EXPECT_THAT(device_->take_completions(), IsEmpty());
}

// Commands launched before a failure in the same work must not run beside later work.
TEST_F(CudaDeviceTest, AFailureInTheMiddleOfWorkWaitsForItsFirstHalf) {
  make({.longest_delay = Nanos(200'000)});
  std::atomic<bool> ran{false};
  EXPECT_THROW(device_->enqueue(StreamId::kCompute, {[&](void* native) {
                                                       fake_->launch(native,
                                                                     [&] { ran = true; });
                                                       throw DeviceError("[x] second launch");
                                                     },
                                                     Nanos(0), 0}),
               DeviceError);
  EXPECT_TRUE(ran);
}

TEST_F(CudaDeviceTest, EveryCallThatFailsIsADeviceErrorAndLeavesTheDeviceUsable) {
  const DriverCall kinds[] = {DriverCall::kCreateEvent,    DriverCall::kRecord,
                              DriverCall::kWait,           DriverCall::kCopy,
                              DriverCall::kLaunchHostFunc, DriverCall::kUse};
  for (DriverCall kind : kinds) {
    for (int64_t nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE(static_cast<int>(kind) * 100 + nth);
      make({.seed = static_cast<uint64_t>(nth)});
      const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
      const auto host = device_->map(MemoryKind::kHost, 1_MiB);
      std::vector<std::byte> user(40'000);
      fake_->fail(kind, nth, kDriverInvalidValue);
      auto program = [&](uint64_t tag) {
        const Event a = device_->enqueue(StreamId::kCompute, kernel([] {}, tag));
        device_->wait(StreamId::kOffload, a);
        const Event b =
            device_->copy(StreamId::kOffload, {host->data(), arena->data(), 100_KiB, tag + 1});
        device_->wait(StreamId::kReload, b);
        device_->copy(StreamId::kReload, {arena->data(), user.data(), Bytes(40'000), tag + 2});
        device_->enqueue_host(StreamId::kOffload, work_that([] {}, tag + 3));
        device_->synchronize_all();
      };
      int failures = 0;
      for (uint64_t round = 0; round < 8; ++round) {
        try {
          program(10 * (round + 1));
        } catch (const DeviceError& error) {
          ++failures;  // the call is made in one of the rounds, or in none
          EXPECT_THAT(error.what(), HasSubstr("fake error 1"));
          device_->resume();
        }
      }
      EXPECT_LE(failures, 1);
      device_.reset();
    }
    TearDown();
  }
}

TEST_F(CudaDeviceTest, ALostGpuIsSaidByEveryCallAndHangsNothing) {
  make();
  Gate gate;
  const Event held = device_->enqueue(StreamId::kCompute, gated(gate, 1));
  device_->enqueue_host(StreamId::kCompute, work_that([] {}, 2));
  fake_->lose_gpu(kDriverLaunchFailure);
  gate.open();
  EXPECT_THAT(error_of([&] { device_->synchronize(held); }), HasSubstr("CUDA_LAUNCH_BLOCKING"));
  EXPECT_FALSE(device_->done(held));
  device_->resume();
  EXPECT_THROW(device_->enqueue(StreamId::kReload, kernel([] {})), DeviceError);
  EXPECT_THROW(device_->synchronize_all(), DeviceError);
  EXPECT_THAT(device_->take_completions(), IsEmpty());
  device_.reset();
}

TEST_F(CudaDeviceTest, SurvivesTheDriversShutdown) {
  make();
  device_->enqueue(StreamId::kCompute, kernel([] {}, 1));
  fake_->lose_gpu(kDriverUnloading);
  device_.reset();
}

// CUDA's queues are finite: a launch into a full one waits for the stream. Behind failed host
// work it would wait forever.
TEST_F(CudaDeviceTest, BesideHostWorkNoQueueIsFilled) {
  make({.queue_capacity = 1000});
  std::atomic<bool> broken{true};
  Gate gate;
  hold_compute(gate, broken);
  int issued = 0;
  std::thread opener([&] { gate.open(); });
  EXPECT_THROW(
      {
        for (; issued < 5000; ++issued) device_->enqueue(StreamId::kCompute, kernel([] {}, 7));
        device_->synchronize_all();
      },
      DeviceError);
  opener.join();
  EXPECT_LT(issued, 1000);
  broken = false;
  device_->resume();
  device_->synchronize_all();
}

// An operator is often several launches.
TEST_F(CudaDeviceTest, BesideHostWorkEveryLaunchOfAnOperatorCounts) {
  make({.queue_capacity = 1000});
  std::atomic<bool> broken{true};
  Gate gate;
  hold_compute(gate, broken);
  const Work launches{[this](void* native) {
                        for (int i = 0; i < 24; ++i) fake_->launch(native, [] {});
                      },
                      Nanos(1000), 7};
  std::thread opener([&] { gate.open(); });
  EXPECT_THROW(
      {
        for (int i = 0; i < 5000; ++i) device_->enqueue(StreamId::kCompute, launches);
        device_->synchronize_all();
      },
      DeviceError);
  opener.join();
  broken = false;
  device_->resume();
  device_->synchronize_all();
}

// A convolution of many slices alone may fill CUDA's queue.
TEST_F(CudaDeviceTest, AnOperatorLargerThanTheQueueIsNotIssuedBesideHostWork) {
  make({.queue_capacity = 1000});
  std::atomic<int64_t> launches{0};
  bool issued = false;
  const Work large{[&](void* native) {
                     issued = true;
                     for (int i = 0; i < 1500; ++i) fake_->launch(native, [] {});
                   },
                   Nanos(1000), 7, &launches};
  device_->enqueue(StreamId::kCompute, large);
  EXPECT_EQ(launches, 1500);
  device_->synchronize_all();
  std::atomic<bool> broken{true};
  Gate gate;
  hold_compute(gate, broken);
  issued = false;
  std::thread opener([&] { gate.open(); });
  EXPECT_THROW(device_->enqueue(StreamId::kCompute, large), DeviceError);
  EXPECT_FALSE(issued) << "it could not be tried again";
  opener.join();
  broken = false;
  device_->resume();
  device_->enqueue(StreamId::kCompute, large);
  EXPECT_TRUE(issued);
  device_->synchronize_all();
}

// Work that fits behind what is in flight is issued; it fits at once or when its stream is
// idle.
TEST_F(CudaDeviceTest, LaunchesBesideHostWorkFitTheQueueAsAWhole) {
  constexpr int kLimit = 100, kQueue = 120;
  make({.queue_capacity = kQueue}, {.commands_beside_host_work = kLimit});
  std::atomic<int64_t> launches{0};
  const Work some{[&](void* native) {
                    for (int i = 0; i < 60; ++i) fake_->launch(native, [] {});
                  },
                  Nanos(1000), 7, &launches};
  device_->enqueue(StreamId::kCompute, some);
  device_->synchronize_all();
  std::atomic<bool> broken{true};
  Gate gate;
  hold_compute(gate, broken);
  device_->enqueue(StreamId::kCompute, some);
  std::thread opener([&] { gate.open(); });
  EXPECT_THROW(device_->enqueue(StreamId::kCompute, some), DeviceError);
  opener.join();
  broken = false;
  device_->resume();
  device_->synchronize_all();
}

// A move that is cut short could not be tried again: it has overwritten a part of its source.
TEST_F(CudaDeviceTest, AMoveBesideHostWorkIsIssuedAsAWholeOrNotAtAll) {
  make({}, {.commands_beside_host_work = 8});
  const Bytes distance = 4_MiB + 4_KiB, size = distance * 10;
  const auto arena = device_->map(MemoryKind::kDevice, size + distance);
  const auto data = pattern(size.count());
  std::memcpy(arena->data(), data.data(), data.size());
  const Copy upwards{arena->data() + distance.count(), arena->data(), size, 0};
  std::atomic<bool> broken{true};
  Gate gate;
  hold_compute(gate, broken);
  std::thread opener([&] {
    // By then, a device that issues parts waits for space.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  EXPECT_THROW(device_->copy(StreamId::kCompute, upwards), DeviceError);
  opener.join();
  broken = false;
  device_->resume();
  device_->synchronize(device_->copy(StreamId::kCompute, upwards));
  EXPECT_EQ(std::memcmp(upwards.to, data.data(), data.size()), 0);
}

// CUDA loads code where it is first launched, and may wait for all streams to do so: forever,
// behind host work that fails.
TEST_F(CudaDeviceTest, CodeIsNotLoadedBesideHostWork) {
  make();
  std::atomic<bool> broken{true};
  const Event io = device_->enqueue_host(StreamId::kOffload, work_that([&] {
                                           if (broken) throw std::runtime_error("disk full");
                                         }));
  bool loaded = false;
  std::atomic<int64_t> launches{0};
  const Work first{[&](void* native) {
                     loaded = true;
                     fake_->launch(native, [] {});
                   },
                   Nanos(0), 0, &launches};
  EXPECT_THROW(device_->enqueue(StreamId::kCompute, first), DeviceError);
  EXPECT_FALSE(loaded);
  broken = false;
  device_->resume();
  device_->synchronize(io);
  device_->synchronize(device_->enqueue(StreamId::kCompute, first));
  EXPECT_TRUE(loaded);
}

TEST_F(CudaDeviceTest, WorkWhoseFirstRunThrewHasNotRun) {
  make();
  bool fails = true;
  std::atomic<int64_t> launches{0};
  const Work first{[&](void* native) {
                     fake_->launch(native, [] {});
                     if (fails) throw std::runtime_error("no plan");
                   },
                   Nanos(0), 0, &launches};
  EXPECT_THROW(device_->enqueue(StreamId::kCompute, first), DeviceError);
  EXPECT_EQ(launches, 0);
  device_->resume();
  fails = false;
  device_->enqueue(StreamId::kCompute, first);
  EXPECT_EQ(launches, 1);
}

// Numbers may choose a kernel, as they do in momentum's second step.
TEST_F(CudaDeviceTest, ANewKernelOfKnownWorkIsNotLoadedBesideHostWork) {
  make();
  const char first = 0, second = 0;
  const void* kernel = &first;
  std::atomic<int> runs{0};
  std::atomic<int64_t> launches{0};
  const Work step{[&](void* native) {
                    fake_->launch(
                        native, [&] { ++runs; }, kernel);
                  },
                  Nanos(0), 0, &launches};
  device_->enqueue(StreamId::kCompute, step);
  std::atomic<bool> broken{true};
  Gate gate;
  hold_compute(gate, broken);
  device_->enqueue(StreamId::kCompute, step);
  kernel = &second;
  std::thread opener([&] { gate.open(); });
  EXPECT_THROW(device_->enqueue(StreamId::kCompute, step), DeviceError);
  opener.join();
  broken = false;
  device_->resume();
  device_->enqueue(StreamId::kCompute, step);
  device_->synchronize_all();
  EXPECT_EQ(runs, 3);
}

TEST_F(CudaDeviceTest, AMoveLoadsNoCodeBesideHostWork) {
  make();
  const auto arena = device_->map(MemoryKind::kDevice, 64_KiB);
  const std::atomic<bool> broken{false};
  Gate gate;
  hold_compute(gate, broken);
  device_->copy(StreamId::kCompute, {arena->data() + 16, arena->data(), 32_KiB, 0});
  gate.open();
  device_->synchronize_all();
}

// CUDA may run the host functions of all streams on one thread, as the fake driver does.
TEST_F(CudaDeviceTest, HostWorkOfOneStreamDoesNotHoldThatOfAnother) {
  make();
  const auto arena = device_->map(MemoryKind::kDevice, 64_KiB);
  Gate slow;
  const Event written = device_->enqueue_host(StreamId::kOffload, slow.work());
  bool read = false;
  device_->synchronize(
      device_->enqueue_host(StreamId::kReload, work_that([&] { read = true; })));
  EXPECT_TRUE(read);
  const auto data = pattern(10'000);  // pageable: copied through staging
  device_->synchronize(
      device_->copy(StreamId::kReload, {arena->data(), data.data(), Bytes(10'000), 0}));
  EXPECT_EQ(std::memcmp(arena->data(), data.data(), data.size()), 0);
  EXPECT_FALSE(device_->done(written));
  slow.open();
  device_->synchronize_all();
}

class CudaDiskTierTest : public CudaDeviceTest {
 protected:
  std::unique_ptr<Tier> make_tier(Bytes limit) {
    auto file = std::make_unique<FaultyFile>();
    file_ = file.get();
    return make_disk_tier_on(*device_, limit, std::move(file));
  }
  FaultyFile* file_ = nullptr;
};

TEST_F(CudaDiskTierTest, StoresAndLoadsThroughPinnedStaging) {
  make({.seed = 3, .longest_delay = Nanos(20'000)});
  const auto arena = device_->map(MemoryKind::kDevice, 32_MiB);
  auto tier = make_tier(32_MiB);
  const Bytes size(9'000'001);
  const auto data = pattern(size.count());
  std::memcpy(arena->data(), data.data(), data.size());
  const Pieces block = tier->reserve(size)->pieces;
  const Event stored = tier->store(block, arena->data(), size, 1);
  device_->wait(StreamId::kReload, stored);
  const Event loaded = tier->load(block, arena->data() + (16 << 20), size, 2);
  device_->synchronize(loaded);
  EXPECT_EQ(std::memcmp(arena->data() + (16 << 20), data.data(), data.size()), 0);
  EXPECT_EQ(completions_by_tag(*device_).size(), 2u);
  // The device's copies have touched device memory, not the host: three pieces each way.
  EXPECT_GE(fake_->calls(DriverCall::kCopy), 6);
  tier.reset();
}

TEST_F(CudaDiskTierTest, AFailedWriteHoldsTheStreamUntilItSucceeds) {
  make();
  const auto arena = device_->map(MemoryKind::kDevice, 32_MiB);
  auto tier = make_tier(32_MiB);
  const Bytes size = 9_MiB;
  const auto data = pattern(size.count());
  std::memcpy(arena->data(), data.data(), data.size());
  std::atomic<int> turn{0};
  file_->fault = [&] { return ++turn == 2 ? EIO : 0; };
  const Pieces block = tier->reserve(size)->pieces;
  try {  // the failure may be known before the last piece is issued
    const Event stored = tier->store(block, arena->data(), size, 1);
    device_->synchronize(stored);
    FAIL() << "did not throw";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("offload stream"));
  }
  device_->resume();
  const Event stored = tier->store(block, arena->data(), size, 2);
  device_->wait(StreamId::kReload, stored);
  device_->synchronize(tier->load(block, arena->data() + (16 << 20), size, 3));
  EXPECT_EQ(std::memcmp(arena->data() + (16 << 20), data.data(), data.size()), 0);
  tier.reset();
}

TEST_F(CudaDiskTierTest, ATierMayGoWhileItsWorkIsPending) {
  make({.seed = 5, .longest_delay = Nanos(50'000)});
  const auto arena = device_->map(MemoryKind::kDevice, 32_MiB);
  auto tier = make_tier(32_MiB);
  const Pieces block = tier->reserve(6_MiB)->pieces;
  const Event stored = tier->store(block, arena->data(), 6_MiB, 1);
  device_->wait(StreamId::kReload, stored);
  tier->load(block, arena->data(), 6_MiB, 2);
  tier.reset();
  device_->synchronize_all();
}

}  // namespace
}  // namespace tidemark
