// What the CUDA device does with memory and streams of full size, over any driver: a GPU's
// (gpu_test.cc), and the fake one on machines without a GPU (cuda_contract_test.cc).
//
//   std::unique_ptr<Device> make();  // an Error skips the tests
//   INSTANTIATE_TEST_SUITE_P(Gpu, CudaMemoryContract, ::testing::Values(&make));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/host_memory.h"
#include "runtime/device/device.h"
#include "runtime/memory/tier.h"

namespace tidemark::testing {

using namespace tidemark::literals;

class CudaMemoryContract : public ::testing::TestWithParam<std::unique_ptr<Device> (*)()> {
 protected:
  void SetUp() override {
    try {
      device_ = GetParam()();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static std::vector<std::byte> random_bytes(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint32_t)) {
      const auto word = static_cast<uint32_t>(random());
      std::memcpy(&bytes[at], &word, std::min(sizeof(word), bytes.size() - at));
    }
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

  std::unique_ptr<Device> device_;
};

TEST_P(CudaMemoryContract, CopiesOfPinnedAndPageableMemory) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  const auto host = device_->map(MemoryKind::kHost, 256_MiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->data()) % 512, 0u);
  // A tag of its own for each copy: pieces of one tag are one completion.
  uint64_t tag = 0;
  for (int64_t count : {int64_t{1}, int64_t{4096}, (int64_t{20} << 20) + 3}) {
    const auto data = random_bytes(count, 5);
    upload(arena->data(), data);
    // Across the boundary of two chunks of pinned memory.
    std::byte* const place = host->data() + kPinChunk.count() - count / 2;
    const Event out =
        device_->copy(StreamId::kOffload, {place, arena->data(), Bytes(count), ++tag});
    device_->wait(StreamId::kReload, out);
    const Event in = device_->copy(StreamId::kReload,
                                   {arena->data() + (32 << 20), place, Bytes(count), ++tag});
    device_->synchronize(in);
    EXPECT_EQ(std::memcmp(place, data.data(), data.size()), 0) << count;
    EXPECT_EQ(download(arena->data() + (32 << 20), count), data) << count;
  }
  EXPECT_EQ(device_->take_completions().size(), 6u);
}

TEST_P(CudaMemoryContract, MovesWithinTheArenaMayOverlap) {
  const auto arena = device_->map(MemoryKind::kDevice, 64_MiB);
  constexpr int64_t kSize = 20 << 20;
  for (int64_t size : {kSize, kSize - 512 + 16, kSize - 5, int64_t{70'001}}) {
    const auto data = random_bytes(size, 7);
    for (int64_t shift :
         {int64_t{512}, int64_t{64 << 10}, (int64_t{64} << 10) + 512, int64_t{5} << 20}) {
      for (bool up : {true, false}) {
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

TEST_P(CudaMemoryContract, StreamsAreOrderedByFencesAlone) {
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
    const Event wiped =
        device_->fill(StreamId::kCompute, arena->data() + (32 << 20), 32_MiB, std::byte{0xDB});
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

TEST_P(CudaMemoryContract, HostWorkRunsInStreamOrderAndMayFailAndBeTriedAgain) {
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

TEST_P(CudaMemoryContract, TheDiskTierGoesThroughStaging) {
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

TEST_P(CudaMemoryContract, TooMuchMemoryIsAnErrorAndTheDeviceGoesOn) {
  EXPECT_THROW(device_->map(MemoryKind::kDevice, Bytes(int64_t{1} << 45)), DeviceError);
  const auto arena = device_->map(MemoryKind::kDevice, 1_MiB);
  const auto data = random_bytes(1000, 1);
  upload(arena->data(), data);
  EXPECT_EQ(download(arena->data(), 1000), data);
}

}  // namespace tidemark::testing
