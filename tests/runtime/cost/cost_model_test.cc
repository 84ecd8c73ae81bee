#include "runtime/cost/cost_model.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

using namespace literals;

// 100 effective operations and 10 effective bytes per nanosecond.
DeviceProfile test_profile() {
  return {.name = {},
          .description = {},
          .float32_flops = 200e9,
          .bfloat16_flops = 800e9,
          .compute_efficiency = 0.5,
          .memory_bandwidth = 20e9,
          .memory_efficiency = 0.5,
          .offload_bandwidth = 2e9,
          .reload_bandwidth = 4e9,
          .transfer_latency = Nanos(100),
          .kernel_floor = Nanos(50)};
}

class CostModelTest : public ::testing::Test {
 protected:
  CostModel model_{test_profile()};
};

TEST_F(CostModelTest, RooflineTakesTheSlowerOfArithmeticAndMemory) {
  EXPECT_EQ(model_.modelled({.flops = 1e6, .bytes_moved = 1000_B, .matrix = true}),
            Nanos(10'000));
  EXPECT_EQ(model_.modelled({.flops = 1e6, .bytes_moved = 1'000'000_B, .matrix = true}),
            Nanos(100'000));
  EXPECT_EQ(model_.modelled({.flops = 1e9, .bytes_moved = 1'000'000_B, .matrix = false}),
            Nanos(100'000));
  EXPECT_EQ(model_.modelled({.flops = 1, .bytes_moved = 8_B, .matrix = true}), Nanos(50));
  EXPECT_EQ(model_.modelled({}), Nanos(50));
}

TEST_F(CostModelTest, MatricesOfBfloat16RunAtTheirOwnRate) {
  EXPECT_EQ(model_.modelled({.flops = 1e6, .matrix = true, .bfloat16 = true}), Nanos(2500));
  EXPECT_EQ(model_.modelled({.flops = 1e6, .bytes_moved = 1'000'000_B, .bfloat16 = true}),
            Nanos(100'000));
}

TEST_F(CostModelTest, AKeyIsOfItsSignatureAndKeepsItsFirstModelledTime) {
  const CostKey a = model_.key(17, {.bytes_moved = 10'000_B});
  const CostKey b = model_.key(18, {.bytes_moved = 20'000_B});
  EXPECT_NE(a, 0u);
  EXPECT_NE(a, b);
  EXPECT_EQ(model_.key(17, {.bytes_moved = 999'999_B}), a);
  EXPECT_EQ(model_.time(a), Nanos(1000));
  EXPECT_EQ(model_.time(b), Nanos(2000));
  EXPECT_EQ(model_.time(0), Nanos(0));
}

TEST_F(CostModelTest, TheLeastMeasuredTimeOfAStepIsTakenOverAtItsEnd) {
  const CostKey key = model_.key(1, {.bytes_moved = 10'000_B});
  model_.measured_op(key, Nanos(700));
  model_.measured_op(key, Nanos(600));
  model_.measured_op(key, Nanos(900));
  EXPECT_EQ(model_.time(key), Nanos(1000)) << "a decision changed within a step";
  model_.end_step(true);
  EXPECT_EQ(model_.time(key), Nanos(600));
  model_.end_step(true);
  EXPECT_EQ(model_.time(key), Nanos(600)) << "a step without it forgets nothing";
  // The operator may have become slower for good.
  model_.measured_op(key, Nanos(800));
  model_.end_step(true);
  EXPECT_EQ(model_.time(key), Nanos(800));
}

TEST_F(CostModelTest, UnusedMeasurementsAreForgotten) {
  const CostKey key = model_.key(1, {.bytes_moved = 10'000_B});
  model_.measured_op(key, Nanos(600));
  model_.measured_copy(StreamId::kOffload, 8_MiB, Nanos(0), Nanos(1));
  model_.end_step(false);
  model_.end_step(true);
  EXPECT_EQ(model_.time(key), Nanos(1000));
  EXPECT_EQ(model_.offload_time(2000_B), Nanos(1100));
}

TEST_F(CostModelTest, WhatCannotBeMeasuredIsIgnored) {
  const CostKey key = model_.key(1, {.bytes_moved = 10'000_B});
  model_.measured_op(0, Nanos(5));
  model_.measured_op(key, Nanos(0));
  model_.measured_copy(StreamId::kCompute, 8_MiB, Nanos(0), Nanos(1000));
  model_.measured_copy(StreamId::kReload, 8_MiB, Nanos(0), Nanos(0));
  model_.end_step(true);
  EXPECT_EQ(model_.time(0), Nanos(0));
  EXPECT_EQ(model_.time(key), Nanos(1000));
  EXPECT_EQ(model_.reload_time(4000_B), Nanos(1100));
}

TEST_F(CostModelTest, TransfersTakeTheProfilesLinkThenTheMeasuredOne) {
  EXPECT_EQ(model_.offload_time(2000_B), Nanos(1100));
  EXPECT_EQ(model_.reload_time(2000_B), Nanos(600));
  // Two copies of 4,000,000 bytes, each moving for 1 ms: 4 bytes per nanosecond.
  for (int i = 0; i < 2; ++i) {
    model_.measured_copy(StreamId::kOffload, Bytes(4'000'000), Nanos(0), Nanos(1'000'100));
  }
  EXPECT_EQ(model_.offload_time(2000_B), Nanos(1100)) << "a decision changed within a step";
  model_.end_step(true);
  EXPECT_EQ(model_.offload_time(2000_B), Nanos(600));
  EXPECT_EQ(model_.reload_time(2000_B), Nanos(600));
  // A copy of a few bytes says nothing about the link.
  model_.measured_copy(StreamId::kOffload, 8_B, Nanos(0), Nanos(1'000'000));
  model_.end_step(true);
  EXPECT_EQ(model_.offload_time(2000_B), Nanos(600));
}

// A copy that ran while the other direction was busy lowers the measured rate, not the fastest.
TEST_F(CostModelTest, TheFastestCopyIsRemembered) {
  EXPECT_EQ(model_.fastest_offload(), 2e9) << "the profile's";
  const auto copy = [&](Bytes bytes, int64_t moving) {
    model_.measured_copy(StreamId::kOffload, bytes, Nanos(0), Nanos(moving + 100));
  };
  copy(Bytes(4'000'000), 1'000'000);
  copy(Bytes(4'000'000), 2'000'000);
  copy(1000_B, 300);  // too short to tell
  EXPECT_EQ(model_.fastest_offload(), 2e9) << "a decision changed within a step";
  model_.end_step(true);
  EXPECT_EQ(model_.fastest_offload(), 4e9);
  copy(Bytes(4'000'000), 3'000'000);
  model_.end_step(true);
  EXPECT_EQ(model_.fastest_offload(), 4e9);
  EXPECT_EQ(model_.offload_time(4000_B), Nanos(100 + 3000));
  copy(Bytes(4'000'000), 500'000);
  model_.end_step(false);
  EXPECT_EQ(model_.fastest_offload(), 4e9) << "a measurement that was to be forgotten";
  EXPECT_EQ(model_.fastest_reload(), 4e9) << "the profile's";
}

// Out for 2 ms, in for 1 ms of these at a half of its rate, as the profile says.
TEST(CostModel, CopiesTheOtherWayAreKnownToSlowDown) {
  DeviceProfile profile;
  profile.offload_bandwidth = profile.duplex_offload_bandwidth = 2e9;
  profile.reload_bandwidth = 4e9;
  profile.duplex_reload_bandwidth = 2e9;
  profile.transfer_latency = Nanos(100);
  CostModel model(profile);
  EXPECT_EQ(model.link_rates().in, 4e9);
  EXPECT_EQ(model.link_rates().in_beside, 2e9);
  const auto copy = [&](StreamId stream, int64_t bytes, int64_t start, int64_t end) {
    model.measured_copy(stream, Bytes(bytes), Nanos(start - 100), Nanos(end));
  };
  copy(StreamId::kOffload, 2'000'000, 0, 1'000'000);
  copy(StreamId::kOffload, 2'000'000, 1'000'000, 2'000'000);
  copy(StreamId::kReload, 5'000'000, 1'500'000, 2'500'000);  // half of the time alone
  copy(StreamId::kReload, 7'000'000, 3'000'000, 4'000'000);
  model.end_step(true);
  EXPECT_EQ(model.reload_time(Bytes(6000)), Nanos(100 + 1000)) << "the average";
  const LinkRates rates = model.link_rates();
  EXPECT_NEAR(rates.in, 12e6 / 1.75e-3, 1);  // 12 MB in 2 ms, of which 0.5 at half the rate
  EXPECT_NEAR(rates.in_beside, rates.in / 2, 1);
  EXPECT_EQ(rates.out, 2e9);
  EXPECT_EQ(rates.out_beside, 2e9);
  // No copy was as fast as that: they were slowed down by less.
  copy(StreamId::kOffload, 2'000'000, 0, 1'000'000);
  copy(StreamId::kReload, 4'000'000, 0, 1'000'000);
  model.end_step(true);
  EXPECT_NEAR(model.link_rates().in, 7e9, 1);
}

TEST_F(CostModelTest, SwappingIsThereAndBackOverAShareOfTheLinkUntilThatIsMeasured) {
  // 100 + 7000 / (2 x 0.35) out, 100 + 7000 / (4 x 0.35) back.
  EXPECT_EQ(model_.swap_time(7000_B), Nanos(100 + 10'000 + 100 + 5000));
  model_.measured_copy(StreamId::kOffload, Bytes(4'000'000), Nanos(0), Nanos(1'000'100));
  model_.end_step(true);
  EXPECT_EQ(model_.swap_time(7000_B), Nanos(100 + 1750 + 100 + 5000));
}

}  // namespace
}  // namespace tidemark
