#include "tests/support/faulty_device.h"

#include "tests/runtime/device/device_failure_contract.h"

namespace tidemark {
namespace {

struct SlowCopies {
  static std::unique_ptr<Device> make() {
    auto device = std::make_unique<FaultyDevice>(make_cpu_device());
    device->delay_copies(/*seed=*/1, Nanos(20'000));
    return device;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(SlowCopies, DeviceContract, SlowCopies);
INSTANTIATE_TYPED_TEST_SUITE_P(SlowCopies, DeviceFailureContract, SlowCopies);

struct Counted {
  static std::unique_ptr<Device> make() {
    return std::make_unique<FaultyDevice>(make_device("sim:a100-80gb"));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(AroundASimulator, DeviceContract, Counted);

TEST(FaultyDeviceAroundASimulator, ItsMemoryIsTheSimulators) {
  DeviceProfile profile = load_profile("a100-80gb");
  profile.pin_bandwidth = 1e9;
  FaultyDevice device(make_sim_device(profile));
  device.map(MemoryKind::kHost, Bytes(1'000'000))->prepare(Bytes(0), Bytes(1));
  EXPECT_EQ(device.now(), Nanos(1'000'000));
  device.adopt(nullptr, Bytes(2'000'000))->prepare(Bytes(0), Bytes(1));
  EXPECT_EQ(device.now(), Nanos(3'000'000));
}

class FaultyDeviceTest : public ::testing::Test {
 protected:
  Event copy() {
    return device_.copy(StreamId::kOffload, {to_.data(), from_.data(), Bytes(4)});
  }

  std::array<std::byte, 4> from_{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 4> to_{};
  FaultyDevice device_{make_cpu_device()};
};

TEST_F(FaultyDeviceTest, FailsTheNthCopyOnceHalfwayThrough) {
  copy();
  device_.synchronize_all();
  device_.fail(CallKind::kCopy, StreamId::kOffload, 2);
  device_.synchronize(copy());
  to_ = {};
  const Event failed = copy();
  EXPECT_THROW(device_.synchronize(failed), DeviceError);
  EXPECT_EQ(to_, (std::array<std::byte, 4>{std::byte{1}, std::byte{2}}));
  device_.resume();
  device_.synchronize(failed);
  EXPECT_EQ(to_, from_);
  device_.synchronize(copy());
  EXPECT_EQ(device_.faults(), 1);
  EXPECT_EQ(device_.calls(CallKind::kCopy, StreamId::kOffload), 4);
  EXPECT_EQ(device_.calls(CallKind::kCopy, StreamId::kReload), 0);
}

TEST_F(FaultyDeviceTest, FailsAlwaysUntilHealed) {
  device_.fail(CallKind::kHostTask, StreamId::kReload, 1, FaultTimes::kAlways);
  std::atomic<int> ran{0};
  device_.enqueue_host(StreamId::kReload, work_that([&] { ++ran; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(device_.synchronize_all(), DeviceError);
    device_.resume();
  }
  EXPECT_THROW(device_.synchronize_all(), DeviceError);
  EXPECT_EQ(device_.faults(), 4);
  device_.heal();
  device_.resume();
  device_.synchronize_all();
  EXPECT_EQ(ran, 1);
}

TEST_F(FaultyDeviceTest, FailsKernelsAndSaysWhich) {
  device_.fail(CallKind::kKernel, StreamId::kCompute, 1);
  device_.enqueue(StreamId::kCompute, work_that([] {}));
  try {
    device_.synchronize_all();
    FAIL() << "did not throw";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                ::testing::StartsWith("injected fault in kernel 1 of the compute stream"));
  }
  device_.resume();
  device_.synchronize_all();
}

}  // namespace
}  // namespace tidemark
