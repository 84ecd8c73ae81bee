// The contract of every tier, on a device that works at once and on one that works on threads.
#include "runtime/memory/tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tests/runtime/memory/fake_device.h"

namespace tidemark {
namespace {

using namespace literals;

size_t count(Bytes bytes) { return static_cast<size_t>(bytes.count()); }

std::vector<std::byte> pattern(Bytes size, uint64_t seed) {
  std::vector<std::byte> data(count(size));
  for (size_t i = 0; i < data.size(); i += sizeof seed) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(&data[i], &seed, std::min(sizeof seed, data.size() - i));
  }
  return data;
}

struct TierCase {
  std::string name;
  std::function<std::unique_ptr<Tier>(Device&, Bytes)> make;
  Bytes unit;  // size to which blocks are rounded up
};

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
};

class TierTest : public ::testing::TestWithParam<std::tuple<TierCase, DeviceCase>> {
 protected:
  std::unique_ptr<Tier> make(Bytes limit) { return tier_case().make(*device_, limit); }
  Bytes unit() const { return tier_case().unit; }
  Device& device() { return *device_; }
  static const TierCase& tier_case() { return std::get<0>(GetParam()); }

  // Stores after all work that the block's fence names, as tier.h requires.
  Event store(Tier& tier, const TierSpace& to, const std::vector<std::byte>& from,
              uint64_t tag = 0) {
    device().wait(StreamId::kOffload, to.fence);
    return tier.store(to.pieces, from.data(), Bytes(static_cast<int64_t>(from.size())), tag);
  }
  Event load(Tier& tier, const Pieces& from, std::vector<std::byte>& to, const Fence& stored) {
    device().wait(StreamId::kReload, stored);
    return tier.load(from, to.data(), Bytes(static_cast<int64_t>(to.size())), 0);
  }

 private:
  std::unique_ptr<Device> device_ = std::get<1>(GetParam()).make();
};

TEST_P(TierTest, WhatIsStoredComesBack) {
  const auto tier = make(40_MiB);
  EXPECT_EQ(tier->name(), tier_case().name);
  const std::vector<Bytes> sizes{1_B,
                                 511_B,
                                 4_KiB,
                                 Bytes(4097),
                                 1_MiB,
                                 4_MiB,
                                 Bytes((4 << 20) + 1),
                                 Bytes((9 << 20) + 123)};
  std::vector<TierSpace> blocks;
  std::vector<std::vector<std::byte>> data;
  std::vector<Event> stored;
  for (size_t i = 0; i < sizes.size(); ++i) {
    blocks.push_back(tier->reserve(sizes[i]).value());
    data.push_back(pattern(sizes[i], static_cast<uint32_t>(i)));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    stored.push_back(store(*tier, blocks[i], data[i]));
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    std::vector<std::byte> back(data[i].size());
    device().synchronize(load(*tier, blocks[i].pieces, back, stored[i]));
    EXPECT_TRUE(back == data[i]) << "of " << sizes[i].count() << " bytes";
  }
}

//   block   AAAA -> loaded, released -> BBBB stored there while A's load may still run
TEST_P(TierTest, AFenceOrdersTheReuseOfABlock) {
  const auto tier = make(1_MiB);
  const auto a = pattern(1_MiB, 1);
  for (uint32_t round = 0; round < 5; ++round) {
    const auto b = pattern(1_MiB, 2 + round);
    std::vector<std::byte> a_back(a.size()), b_back(b.size());
    const TierSpace first = tier->reserve(1_MiB).value();
    const Event stored = store(*tier, first, a);
    const Event loaded = load(*tier, first.pieces, a_back, stored);
    tier->release(first.pieces, loaded);
    const TierSpace second = tier->reserve(1_MiB).value();
    EXPECT_EQ(second.pieces, first.pieces);
    EXPECT_EQ(second.fence[StreamId::kReload], loaded.ticket);
    const Event stored_b = store(*tier, second, b);
    const Event loaded_b = load(*tier, second.pieces, b_back, stored_b);
    device().synchronize(loaded_b);
    EXPECT_TRUE(a_back == a);
    EXPECT_TRUE(b_back == b);
    tier->release(second.pieces, loaded_b);
  }
}

TEST_P(TierTest, BothDirectionsAtOnce) {
  const auto tier = make(32_MiB);
  std::vector<std::vector<std::byte>> data, back;
  std::vector<TierSpace> blocks;
  std::vector<Event> stored;
  for (uint32_t i = 0; i < 6; ++i) {
    data.push_back(pattern(5_MiB, i));
    back.emplace_back(data.back().size());
    blocks.push_back(tier->reserve(5_MiB).value());
  }
  for (size_t i = 0; i < data.size(); ++i) {
    stored.push_back(store(*tier, blocks[i], data[i]));
    if (i > 0) load(*tier, blocks[i - 1].pieces, back[i - 1], stored[i - 1]);
  }
  load(*tier, blocks.back().pieces, back.back(), stored.back());
  device().synchronize_all();
  for (size_t i = 0; i < data.size(); ++i) EXPECT_TRUE(back[i] == data[i]) << i;
}

TEST_P(TierTest, TheLimitIsExact) {
  const Bytes limit = 10 * unit();
  const auto tier = make(limit);
  EXPECT_EQ(tier->limit(), limit);
  EXPECT_FALSE(tier->reserve(limit + 1_B));
  const auto whole = tier->reserve(limit);
  ASSERT_TRUE(whole);
  EXPECT_EQ(tier->used(), limit);
  EXPECT_FALSE(tier->reserve(1_B));
  tier->release(whole->pieces, {});
  EXPECT_EQ(tier->used(), 0_B);

  std::vector<Pieces> blocks;
  while (const auto next = tier->reserve(unit() - 1_B)) blocks.push_back(next->pieces);
  EXPECT_EQ(blocks.size(), 10U);
  EXPECT_EQ(tier->used(), limit);
  for (const Pieces& pieces : blocks) {
    ASSERT_EQ(pieces.size(), 1U);
    EXPECT_EQ(pieces[0].offset.value() % unit().count(), 0);
    tier->release(pieces, {});
  }
}

TEST_P(TierTest, ALimitBelowAUnitIsKept) {
  const auto tier = make(2 * unit() - 1_B);
  EXPECT_EQ(tier->limit(), 2 * unit() - 1_B);
  EXPECT_TRUE(tier->reserve(1_B));
  EXPECT_FALSE(tier->reserve(1_B));
  EXPECT_FALSE(make(unit() - 1_B)->reserve(1_B));
}

TEST_P(TierTest, ALimitOfNothingAnswersNone) {
  const auto tier = make(0_B);
  EXPECT_FALSE(tier->reserve(1_B));
  EXPECT_FALSE(tier->reserve(0_B));
  EXPECT_EQ(tier->limit(), 0_B);
  EXPECT_EQ(tier->used(), 0_B);
  EXPECT_EQ(tier->peak(), 0_B);
}

TEST_P(TierTest, PeakIsTheHighestEnd) {
  const auto tier = make(10 * unit());
  const Pieces a = tier->reserve(3 * unit())->pieces;
  const Pieces b = tier->reserve(4 * unit())->pieces;
  tier->release(b, {});
  tier->release(a, {});
  EXPECT_FALSE(tier->reserve(11 * unit()));
  EXPECT_EQ(tier->peak(), 7 * unit());
}

//   |aa|bb|cc|dd|   b and d go    |aa|ee|cc|ee|
TEST_P(TierTest, TakesSeveralHolesWhereNoneIsLargeEnough) {
  const Bytes quarter = 3 * unit();
  const auto tier = make(4 * quarter);
  std::vector<TierSpace> spaces;
  std::vector<std::vector<std::byte>> data;
  std::vector<Event> stored;
  for (uint32_t i = 0; i < 4; ++i) {
    spaces.push_back(tier->reserve(quarter).value());
    data.push_back(pattern(quarter, i));
    stored.push_back(store(*tier, spaces[i], data[i]));
  }
  device().synchronize_all();
  device().take_completions();
  tier->release(spaces[1].pieces, stored[1]);
  tier->release(spaces[3].pieces, stored[3]);
  EXPECT_FALSE(tier->reserve(2 * quarter + 1_B));

  const auto whole = pattern(2 * quarter - 3_B, 9);
  const TierSpace space = tier->reserve(2 * quarter - 3_B).value();
  EXPECT_EQ(space.pieces.size(), 2U);
  EXPECT_EQ(space.fence[StreamId::kOffload], stored[3].ticket) << "all holes' fences";
  EXPECT_EQ(tier->used(), tier->limit());
  const Event written = store(*tier, space, whole, 42);
  std::vector<std::byte> back(whole.size());
  device().synchronize(load(*tier, space.pieces, back, written));
  EXPECT_TRUE(back == whole);
  ASSERT_EQ(device().take_completions().size(), 1U) << "one transfer, however many pieces";
  for (const size_t i : {0U, 2U}) {
    std::vector<std::byte> neighbour(data[i].size());
    device().synchronize(load(*tier, spaces[i].pieces, neighbour, stored[i]));
    EXPECT_TRUE(neighbour == data[i]) << i;
  }
  tier->release(space.pieces, written);
  tier->release(spaces[0].pieces, {});
  tier->release(spaces[2].pieces, {});
  EXPECT_EQ(tier->used(), 0_B);
  EXPECT_EQ(tier->reserve(4 * quarter).value().pieces.size(), 1U) << "holes have joined";
}

TEST_P(TierTest, CompletionsCarryTheTag) {
  const auto tier = make(1_MiB);
  const TierSpace block = tier->reserve(4_KiB).value();
  const auto data = pattern(4_KiB, 1);
  const Event stored = store(*tier, block, data, 42);
  EXPECT_EQ(stored.stream, StreamId::kOffload);
  device().synchronize(stored);
  const auto completions = device().take_completions();
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].tag, 42U);
  EXPECT_EQ(completions[0].stream, StreamId::kOffload);
}

TEST_P(TierTest, ACopyLargerThanItsBlockIsAMistake) {
  const auto tier = make(1_MiB);
  const Pieces block = tier->reserve(unit())->pieces;
  std::vector<std::byte> data(count(unit()) + 1);
  const Bytes size(static_cast<int64_t>(data.size()));
  EXPECT_THROW(tier->store(block, data.data(), size, 0), std::logic_error);
  EXPECT_THROW(tier->load(block, data.data(), size, 0), std::logic_error);
}

TEST_P(TierTest, TimesGrowWithBytes) {
  const auto tier = make(1_MiB);
  EXPECT_GE(tier->store_time(0_B), Nanos(0));
  EXPECT_LE(tier->store_time(1_MiB), tier->store_time(2_MiB));
  EXPECT_LE(tier->load_time(1_MiB), tier->load_time(2_MiB));
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, TierTest,
    ::testing::Combine(
        ::testing::Values(TierCase{"host", make_host_tier, kAlignment},
                          TierCase{"disk",
                                   [](Device& device, Bytes limit) {
                                     return make_disk_tier(device, limit);
                                   },
                                   4_KiB}),
        ::testing::Values(DeviceCase{"fake", [] { return std::make_unique<FakeDevice>(); }},
                          DeviceCase{"cpu", [] { return make_cpu_device({.threads = 1}); }})),
    [](const auto& c) { return std::get<0>(c.param).name + "_" + std::get<1>(c.param).name; });

TEST(TierWithoutDataTest, OnlyCounts) {
  FakeDevice device(false);
  for (const bool host : {true, false}) {
    const auto tier =
        host ? make_host_tier(device, 1_MiB) : make_disk_tier(device, 1_MiB, "/nowhere");
    const Pieces block = tier->reserve(512_KiB)->pieces;
    const Event stored = tier->store(block, nullptr, 512_KiB, 7);
    const Event loaded = tier->load(block, nullptr, 512_KiB, 8);
    EXPECT_EQ(stored.stream, StreamId::kOffload);
    EXPECT_EQ(loaded.stream, StreamId::kReload);
    EXPECT_FALSE(tier->reserve(1_MiB));
    tier->release(block, loaded);
    EXPECT_EQ(tier->peak(), 512_KiB);
  }
}

// The fake device: 1 GB/s out, 2 GB/s in, 0.1 and 0.2 GB/s to and from the disk, 1 us of
// latency.
TEST(TierCostTest, FollowsTheProfile) {
  FakeDevice device;
  const auto host = make_host_tier(device, 1_MiB);
  EXPECT_EQ(host->store_time(Bytes(1'000'000)), Nanos(1'001'000));
  EXPECT_EQ(host->load_time(Bytes(1'000'000)), Nanos(501'000));
  const auto disk = make_disk_tier(device, 1_MiB);
  EXPECT_EQ(disk->store_time(Bytes(1'000'000)), Nanos(10'001'000));
  EXPECT_EQ(disk->load_time(Bytes(1'000'000)), Nanos(5'001'000));

  const Pieces block = disk->reserve(Bytes(1'000'000))->pieces;
  const std::vector<std::byte> data(1'000'000);
  device.enqueued.clear();
  disk->store(block, data.data(), Bytes(1'000'000), 0);
  ASSERT_EQ(device.enqueued.size(), 1U);
  EXPECT_EQ(device.enqueued[0], std::make_pair(StreamId::kOffload, Nanos(10'001'000)));
}

// On the simulator, where issuing a copy takes 1 us, and pinning a chunk takes 10 us or
// nothing.
class PinningTest : public ::testing::TestWithParam<Nanos> {
 protected:
  PinningTest() {
    DeviceProfile profile;
    profile.name = "test";
    profile.offload_bandwidth = profile.duplex_offload_bandwidth = 1e9;
    profile.reload_bandwidth = profile.duplex_reload_bandwidth = 1e9;
    profile.launch_cost = kIssue;
    if (per_chunk() > Nanos(0)) {
      profile.pin_bandwidth = static_cast<double>(kPinChunk.count()) /
                              static_cast<double>(per_chunk().count()) * 1e9;
    }
    device_ = make_sim_device(profile);
    tier_ = make_host_tier(*device_, kPinChunk * 3 + Bytes(kPinChunk.count() / 2));
  }
  static Nanos per_chunk() { return GetParam(); }

  // The issuing thread's time for the store.
  Nanos store(const TierSpace& space, Bytes bytes) {
    const Nanos before = device_->now();
    tier_->store(space.pieces, nullptr, bytes, 0);
    return device_->now() - before;
  }
  Nanos load(const TierSpace& space, Bytes bytes) {
    const Nanos before = device_->now();
    tier_->load(space.pieces, nullptr, bytes, 0);
    return device_->now() - before;
  }

  static constexpr Nanos kIssue{1000};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Tier> tier_;
};

//   chunk   |    0    |    1    |
//   block   |a|  b  |  c  |
TEST_P(PinningTest, TheFirstStoreIntoAChunkPaysForIt) {
  const TierSpace a = tier_->reserve(1_MiB).value();
  const TierSpace b = tier_->reserve(kPinChunk - 4_MiB).value();
  const TierSpace c = tier_->reserve(8_MiB).value();
  ASSERT_EQ(c.pieces.at(0).offset, Offset(0) + kPinChunk - 3_MiB);
  EXPECT_EQ(store(a, 1_MiB), per_chunk() + kIssue);
  EXPECT_EQ(store(b, 1_MiB), kIssue);
  EXPECT_EQ(store(c, 3_MiB), kIssue) << "what is stored there does not reach the second";
  EXPECT_EQ(store(c, 8_MiB), per_chunk() + kIssue);
  EXPECT_EQ(load(c, 8_MiB), kIssue);
  EXPECT_EQ(store(a, 1_MiB), kIssue);
  tier_->release(a.pieces, {});
  EXPECT_EQ(store(tier_->reserve(1_MiB).value(), 1_MiB), kIssue);
}

//   chunk   |    0    |    1    |    2    |  3 |
//   block   |  whole  |    b    |  whole  |  d |
TEST_P(PinningTest, EachPieceIsPaidFor) {
  const Bytes half(kPinChunk.count() / 2);
  std::vector<TierSpace> chunks;
  for (int i = 0; i < 3; ++i) chunks.push_back(tier_->reserve(kPinChunk).value());
  const TierSpace d = tier_->reserve(half).value();
  tier_->release(chunks[0].pieces, {});
  tier_->release(chunks[2].pieces, {});
  const TierSpace whole = tier_->reserve(kPinChunk * 2).value();
  ASSERT_EQ(whole.pieces.size(), 2U);
  EXPECT_EQ(store(whole, kPinChunk * 2), 2 * per_chunk() + 2 * kIssue);
  EXPECT_EQ(store(chunks[1], kPinChunk), per_chunk() + kIssue);
  EXPECT_EQ(store(d, half), Nanos(per_chunk().count() / 2) + kIssue) << "half a chunk is left";
}

INSTANTIATE_TEST_SUITE_P(HostTier, PinningTest, ::testing::Values(Nanos(10'000), Nanos(0)),
                         [](const auto& c) {
                           return c.param > Nanos(0) ? "Counted" : "NotCounted";
                         });

TEST(HostTierTest, MapsExactlyItsLimit) {
  FakeDevice device;
  make_host_tier(device, Bytes(123'457));
  make_host_tier(device, 0_B);
  ASSERT_EQ(device.mapped.size(), 1U);
  EXPECT_EQ(device.mapped[0], std::make_pair(MemoryKind::kHost, Bytes(123'457)));
}

}  // namespace
}  // namespace tidemark
