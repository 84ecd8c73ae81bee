#include "runtime/memory/disk_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/core/errors.h"
#include "tests/runtime/memory/fake_device.h"
#include "tests/runtime/memory/faulty_file.h"
#include "tests/support/usage_error.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using namespace literals;

class DiskTierTest : public ::testing::Test {
 protected:
  std::unique_ptr<Tier> make(Bytes limit) { return make_disk_tier_on(device_, limit, file_); }

  static std::vector<std::byte> data(Bytes size, int value) {
    return std::vector<std::byte>(static_cast<size_t>(size.count()),
                                  static_cast<std::byte>(value));
  }

  FakeDevice device_;
  std::shared_ptr<FaultyFile> file_ = std::make_shared<FaultyFile>();
};

TEST_F(DiskTierTest, StagingIsBounded) {
  const auto tier = make(1_GiB);
  ASSERT_EQ(device_.mapped.size(), 1U);
  EXPECT_EQ(device_.mapped[0], std::make_pair(MemoryKind::kHost, kDiskStaging));
  const auto whole = data(20_MiB, 3);
  const Pieces block = tier->reserve(20_MiB)->pieces;
  tier->store(block, whole.data(), 20_MiB, 0);
  EXPECT_EQ(file_->transfers, 5U);
  EXPECT_EQ(device_.mapped.size(), 1U);
}

TEST_F(DiskTierTest, TheFileGrowsInStepsUpToTheLimit) {
  const auto tier = make(150_MiB);
  tier->reserve(1_MiB);
  tier->reserve(1_MiB);
  EXPECT_THAT(file_->allocations, ElementsAre(Offset(64 << 20)));
  tier->reserve(100_MiB);
  tier->reserve(40_MiB);
  EXPECT_THAT(file_->allocations,
              ElementsAre(Offset(64 << 20), Offset(128 << 20), Offset(150 << 20)));
}

//   limit  |--------------------------------|
//   disk   |------------|     a full disk is an answer, and what is there goes on being used
TEST_F(DiskTierTest, AFullDiskAnswersNone) {
  file_->room = 3_MiB;
  const auto tier = make(1_GiB);
  const auto a = tier->reserve(2_MiB);
  ASSERT_TRUE(a);
  EXPECT_THAT(file_->allocations, ElementsAre(Offset(64 << 20), Offset(2 << 20)));
  EXPECT_FALSE(tier->reserve(2_MiB));
  EXPECT_EQ(tier->used(), 2_MiB);
  EXPECT_EQ(tier->peak(), 2_MiB);
  const auto b = tier->reserve(1_MiB);
  ASSERT_TRUE(b);
  EXPECT_FALSE(tier->reserve(1_B));

  const auto whole = data(1_MiB, 9);
  auto back = data(1_MiB, 0);
  tier->store(b->pieces, whole.data(), 1_MiB, 0);
  device_.synchronize(tier->load(b->pieces, back.data(), 1_MiB, 0));
  EXPECT_EQ(back, whole);

  tier->release(a->pieces, Event{StreamId::kReload, 4});
  const auto again = tier->reserve(2_MiB);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->pieces, a->pieces);
  EXPECT_EQ(again->fence[StreamId::kReload], 4U);
}

TEST_F(DiskTierTest, ShortTransfersAndInterruptsAreGoneOnFrom) {
  file_->most_at_once = 3 * 4096 + 100;
  int turn = 0;
  file_->fault = [&] { return ++turn % 3 == 0 ? EINTR : 0; };
  const auto tier = make(1_MiB);
  std::vector<std::byte> whole(300'000);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::byte>(i * 31 >> 4);
  std::vector<std::byte> back(whole.size());
  const Bytes size(static_cast<int64_t>(whole.size()));
  const Pieces block = tier->reserve(size)->pieces;
  tier->store(block, whole.data(), size, 0);
  device_.synchronize(tier->load(block, back.data(), size, 0));
  EXPECT_EQ(back, whole);
}

TEST_F(DiskTierTest, AnErrorIsThrownAndTheSameWorkSucceedsLater) {
  const auto tier = make(16_MiB);
  const auto whole = data(9_MiB, 5);
  auto back = data(9_MiB, 0);
  const Pieces block = tier->reserve(9_MiB)->pieces;
  int calls = 0;
  file_->fault = [&] { return ++calls == 2 ? EIO : 0; };  // in the middle
  const Event stored = tier->store(block, whole.data(), 9_MiB, 0);
  const std::string failure =
      testing::message_of<DeviceError>([&] { device_.synchronize(stored); });
  EXPECT_THAT(failure, ::testing::HasSubstr("[disk tier] writing"));
  EXPECT_THAT(failure, ::testing::HasSubstr("Input/output error"));
  device_.resume();
  calls = 0;
  const Event loaded = tier->load(block, back.data(), 9_MiB, 0);
  EXPECT_THROW(device_.synchronize(loaded), DeviceError);
  device_.resume();
  device_.synchronize(loaded);
  EXPECT_EQ(back, whole);
}

TEST_F(DiskTierTest, AFileThatEndsEarlyIsAnError) {
  const auto tier = make(1_MiB);
  const Pieces block = tier->reserve(8_KiB)->pieces;
  file_->most_at_once = 0;
  auto back = data(8_KiB, 0);
  EXPECT_THROW(device_.synchronize(tier->load(block, back.data(), 8_KiB, 0)), DeviceError);
}

TEST_F(DiskTierTest, PendingWorkKeepsTheFile) {
  auto tier = make(1_MiB);
  const auto whole = data(64_KiB, 5);
  const Pieces block = tier->reserve(64_KiB)->pieces;
  bool broken = true;
  file_->fault = [&] { return broken ? EIO : 0; };
  const Event stored = tier->store(block, whole.data(), 64_KiB, 0);
  const std::weak_ptr<FaultyFile> watch = file_;
  tier.reset();
  file_.reset();
  ASSERT_FALSE(watch.expired());
  broken = false;
  device_.resume();
  device_.synchronize(stored);
  EXPECT_TRUE(watch.expired());
}

TEST_F(DiskTierTest, NothingStaleReachesTheDisk) {
  const auto tier = make(1_MiB);
  const auto secret = data(8_KiB, 0xaa);
  const Pieces a = tier->reserve(8_KiB)->pieces;
  tier->store(a, secret.data(), 8_KiB, 0);
  const auto byte = data(1_B, 0xbb);
  const Pieces b = tier->reserve(1_B)->pieces;
  tier->store(b, byte.data(), 1_B, 0);
  auto back = data(4_KiB, 1);
  device_.synchronize(tier->load(b, back.data(), 4_KiB, 0));
  auto expected = data(4_KiB, 0);
  expected[0] = static_cast<std::byte>(0xbb);
  EXPECT_EQ(back, expected);
}

}  // namespace
}  // namespace tidemark
