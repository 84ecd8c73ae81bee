// Virtual times of small scenarios, to the nanosecond. One character is one microsecond.
#include "tests/runtime/device/device_contract.h"

namespace tidemark {
namespace {

struct Sim {
  static std::unique_ptr<Device> make() { return make_device("sim:a100-80gb"); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, DeviceContract, Sim);

constexpr Nanos us(int64_t count) { return Nanos(count * 1000); }

// A link of 1,000 bytes per microsecond out and 2,000 in; half of each while both are busy.
DeviceProfile test_profile() {
  return {.name = "test",
          .description = {},
          .memory_bandwidth = 1e10,
          .memory_efficiency = 0.5,
          .offload_bandwidth = 1e9,
          .reload_bandwidth = 2e9,
          .duplex_offload_bandwidth = 0.5e9,
          .duplex_reload_bandwidth = 1e9};
}

class SimDeviceTest : public ::testing::Test {
 protected:
  void make() { device_ = make_sim_device(profile_); }
  Event compute(Nanos cost) { return device_->enqueue(StreamId::kCompute, {{}, cost, ++tag_}); }
  Event copy(StreamId stream, int64_t bytes) {
    return device_->copy(stream, {nullptr, nullptr, Bytes(bytes), ++tag_});
  }
  void expect(uint64_t tag, Nanos start, Nanos end) {
    device_->synchronize_all();
    for (const Completion& each : device_->take_completions()) all_[each.tag] = each;
    EXPECT_EQ(all_.at(tag).start.count(), start.count()) << "start of " << tag;
    EXPECT_EQ(all_.at(tag).end.count(), end.count()) << "end of " << tag;
  }

  // One copy out and one in, both from the beginning.
  void expect_ends(int64_t out, Nanos out_end, int64_t in, Nanos in_end) {
    make();
    copy(StreamId::kOffload, out);
    copy(StreamId::kReload, in);
    expect(1, us(0), out_end);
    expect(2, us(0), in_end);
  }

  DeviceProfile profile_ = test_profile();
  std::unique_ptr<Device> device_;
  uint64_t tag_ = 0;
  std::map<uint64_t, Completion> all_;
};

TEST_F(SimDeviceTest, NamesItsProfile) {
  make();
  EXPECT_EQ(device_->name(), "sim:test");
  EXPECT_FALSE(device_->has_data());
}

TEST_F(SimDeviceTest, TheIssueClockAdvancesByTheLaunchCost) {
  //   host     LLL
  //   compute   |11111|22|       3: the queue is empty by then
  profile_.launch_cost = us(1);
  make();
  compute(us(5));
  compute(us(2));
  EXPECT_EQ(device_->now(), us(2));
  device_->synchronize_all();
  EXPECT_EQ(device_->now(), us(8));
  compute(us(1));
  EXPECT_EQ(device_->now(), us(9));
  expect(1, us(1), us(6));
  expect(2, us(6), us(8));
  expect(3, us(9), us(10));
}

TEST_F(SimDeviceTest, SmallKernelsTakeTheFloorAndHostTasksDoNot) {
  profile_.kernel_floor = us(3);
  make();
  compute(us(1));
  device_->enqueue_host(StreamId::kCompute, {{}, us(1), ++tag_});
  copy(StreamId::kCompute, 10);
  expect(1, us(0), us(3));
  expect(2, us(3), us(4));
  expect(3, us(4), us(7));
}

TEST_F(SimDeviceTest, CopiesWithinTheArenaReadAndWrite) {
  make();
  copy(StreamId::kCompute, 10'000);  // 20,000 bytes at 5,000 per microsecond
  expect(1, us(0), us(4));
}

TEST_F(SimDeviceTest, StreamsOverlapAndWaitForEachOther) {
  //   compute  |1111|2222|    |444|
  //   offload       |3333333333|        3 waits for 1; 4 waits for 3
  make();
  const Event first = compute(us(4));
  compute(us(4));
  device_->wait(StreamId::kOffload, first);
  const Event out = copy(StreamId::kOffload, 10'000);
  device_->wait(StreamId::kCompute, out);
  compute(us(3));
  expect(1, us(0), us(4));
  expect(2, us(4), us(8));
  expect(3, us(4), us(14));
  expect(4, us(14), us(17));
  EXPECT_EQ(device_->stalled(StreamId::kCompute), us(6));
  EXPECT_EQ(device_->stalled(StreamId::kOffload), us(4));
  EXPECT_EQ(device_->stalled(StreamId::kReload), us(0));
}

TEST_F(SimDeviceTest, TimeWithNothingToDoIsNotAStall) {
  //   host     ==========L
  //   compute  |11|                     the reload is enqueued long after what it waits for
  //   reload             |2|
  make();
  const Event first = compute(us(2));
  device_->synchronize(device_->enqueue_host(StreamId::kOffload, {{}, us(10), 0}));
  device_->wait(StreamId::kReload, first);
  copy(StreamId::kReload, 2000);
  expect(2, us(10), us(11));
  EXPECT_EQ(device_->stalled(StreamId::kReload), us(0));
}

TEST_F(SimDeviceTest, LatencyIsPaidPerCopy) {
  profile_.transfer_latency = us(2);
  make();
  copy(StreamId::kReload, 2000);
  copy(StreamId::kReload, 4000);
  copy(StreamId::kReload, 0);
  expect(1, us(0), us(3));
  expect(2, us(3), us(7));
  expect(3, us(7), us(9));
}

TEST_F(SimDeviceTest, BothWaysAtOnceAreSlower) {
  //   offload  |1111|                 4,000 bytes alone: 4
  //   reload   |2222222|              8,000 bytes: 4 in the first 4 us, 4 more in 2
  expect_ends(4000, us(4), 8000, us(6));
}

TEST_F(SimDeviceTest, ACopyWithinTheOtherWaysIsSlowThroughout) {
  //   offload  |1111|                 4,000 bytes; what is enqueued later does not change it
  //   reload   |22|                   2,000 bytes at 1,000 per microsecond
  expect_ends(4000, us(4), 2000, us(2));
}

TEST_F(SimDeviceTest, TheSharedRateHoldsExactlyWhileTheOtherWayIsBusy) {
  //   compute  |AA|    |CC|
  //   reload     |1111|  |3333|       each 8,000 bytes
  //   offload  |2222222222222222|     12,000 bytes: 2 + 4/2 + 2 + 4/2 us' worth, then 4 alone
  //            0 2    6  8    12
  make();
  const Event a = compute(us(2));
  device_->wait(StreamId::kReload, a);
  copy(StreamId::kReload, 8000);  // 2
  const Event c = compute(us(6));
  device_->wait(StreamId::kReload, c);
  copy(StreamId::kReload, 8000);     // 4
  copy(StreamId::kOffload, 12'000);  // 5
  expect(2, us(2), us(6));
  expect(4, us(8), us(12));
  expect(5, us(0), us(16));
}

TEST_F(SimDeviceTest, HostTasksDoNotUseTheLink) {
  make();
  device_->enqueue_host(StreamId::kOffload, {{}, us(100), 0});
  copy(StreamId::kReload, 8000);
  expect(1, us(0), us(4));
}

TEST_F(SimDeviceTest, AFullQueueHoldsTheHost) {
  make();
  for (Ticket i = 0; i < kMaxInFlight; ++i) compute(us(1));
  EXPECT_EQ(device_->now(), us(0));
  compute(us(1));
  EXPECT_EQ(device_->now(), us(1));
  EXPECT_TRUE(device_->done(Event{StreamId::kCompute, 1}));
  EXPECT_FALSE(device_->done(Event{StreamId::kCompute, 2}));
}

TEST_F(SimDeviceTest, AnOldFenceIsDoneAndRecentOnesAreExact) {
  make();
  const Event old = compute(us(1));
  Event last = old;
  for (Ticket i = 0; i < 5 * kMaxInFlight; ++i) last = compute(us(1));
  EXPECT_TRUE(device_->done(old));
  device_->wait(StreamId::kReload, old);
  const Nanos now = device_->now();
  copy(StreamId::kReload, 2000);
  device_->wait(StreamId::kOffload, last);
  copy(StreamId::kOffload, 1000);
  const uint64_t end = 5 * kMaxInFlight + 1;
  expect(end + 1, now, now + us(1));
  expect(end + 2, us(static_cast<int64_t>(end)), us(static_cast<int64_t>(end) + 1));
}

// Ten microseconds for a whole chunk.
constexpr double kPinRate = static_cast<double>(kPinChunk.count()) * 1e5;

TEST_F(SimDeviceTest, EachChunkOfHostMemoryIsPinnedOnce) {
  //   chunk  |    0    |    1    |  2 |
  profile_.pin_bandwidth = kPinRate;
  make();
  const Bytes size = kPinChunk * 2 + Bytes(kPinChunk.count() / 2);
  const auto host = device_->map(MemoryKind::kHost, size);
  EXPECT_EQ(device_->now(), us(0)) << "mapping pins nothing";
  host->prepare(Bytes(100), Bytes(0));
  EXPECT_EQ(device_->now(), us(0));
  host->prepare(Bytes(100), Bytes(1));
  EXPECT_EQ(device_->now(), us(10));
  host->prepare(Bytes(0), kPinChunk);
  EXPECT_EQ(device_->now(), us(10)) << "it was there";
  host->prepare(kPinChunk - Bytes(1), Bytes(2));
  EXPECT_EQ(device_->now(), us(20)) << "the second alone";
  host->prepare(size - Bytes(1), Bytes(1));
  EXPECT_EQ(device_->now(), us(25)) << "what is left of the region";
  host->prepare(Bytes(0), size);
  EXPECT_EQ(device_->now(), us(25));

  device_->map(MemoryKind::kHost, size)->prepare(Bytes(0), size);
  EXPECT_EQ(device_->now(), us(50)) << "another region's are its own";
  device_->map(MemoryKind::kDevice, size)->prepare(Bytes(0), size);
  EXPECT_EQ(device_->now(), us(50)) << "device memory is not pinned";

  const auto adopted = device_->adopt(nullptr, size);
  EXPECT_EQ(device_->now(), us(50)) << "nor is what is adopted, before it is prepared";
  for (int turn = 0; turn < 2; ++turn) adopted->prepare(Bytes(0), size);
  EXPECT_EQ(device_->now(), us(75));
}

TEST_F(SimDeviceTest, PinningHoldsTheHostAndNotTheStreams) {
  //   host     LPPPPPPPPPPL
  //   compute   |1111111111111|
  //   offload              |2|
  profile_.pin_bandwidth = kPinRate;
  profile_.launch_cost = us(1);
  make();
  const auto host = device_->map(MemoryKind::kHost, kPinChunk);
  compute(us(13));
  host->prepare(Bytes(0), Bytes(1000));
  copy(StreamId::kOffload, 1000);
  EXPECT_EQ(device_->now(), us(12));
  expect(1, us(1), us(14));
  expect(2, us(12), us(13));
}

TEST_F(SimDeviceTest, WithoutARatePinningIsNotCounted) {
  make();
  const auto host = device_->map(MemoryKind::kHost, kPinChunk * 3);
  host->prepare(Bytes(0), kPinChunk * 3);
  EXPECT_EQ(device_->now(), us(0));
}

TEST_F(SimDeviceTest, AHostRegionMayBeBeyondAllMemory) {
  profile_.pin_bandwidth = kPinRate;
  make();
  const auto host = device_->map(MemoryKind::kHost, Bytes(int64_t{1} << 62));
  host->prepare(Bytes(0), Bytes(1));
  EXPECT_EQ(device_->now(), us(10));
  EXPECT_THROW(host->prepare(host->size(), Bytes(1)), std::logic_error);
  EXPECT_THROW(host->prepare(Bytes(-1), Bytes(1)), std::logic_error);
}

TEST_F(SimDeviceTest, WorkIsNotRun) {
  make();
  device_->enqueue(StreamId::kCompute, work_that([] { FAIL() << "ran"; }));
  device_->enqueue_host(StreamId::kOffload, work_that([] { FAIL() << "ran"; }));
  device_->synchronize_all();
}

}  // namespace
}  // namespace tidemark
