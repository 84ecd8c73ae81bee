// What a Device that runs work promises when work fails, as a typed suite; see
// device_contract.h.
#pragma once

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/runtime/device/device_contract.h"
#include "tests/support/faulty_device.h"

namespace tidemark {

template <class Factory>
class DeviceFailureContract : public ::testing::Test {
 protected:
  // Work that fails until the test allows it.
  Work failing(uint64_t tag = 0) {
    return work_that(
        [this] {
          ++attempts_;
          if (broken_) throw std::runtime_error("[conv2d] no memory for the workspace");
        },
        tag);
  }
  void wait_until_held() { EXPECT_THROW(device_->synchronize_all(), DeviceError); }

  std::atomic<bool> broken_{true};
  std::atomic<int> attempts_{0};
  std::unique_ptr<Device> device_ = Factory::make();  // last: its threads use the above
};
TYPED_TEST_SUITE_P(DeviceFailureContract);

TYPED_TEST_P(DeviceFailureContract, HoldsWhatIsBehindItAndWhatWaitsForIt) {
  Device& device = *this->device_;
  std::vector<int> compute;
  std::vector<int> reload;
  // Once a failure is known, enqueueing throws, so the gate delays the failure until all is
  // enqueued.
  Gate gate;
  device.enqueue(StreamId::kCompute, gate.work());
  device.enqueue(StreamId::kCompute, work_that([&] { compute.push_back(1); }));
  const Event failed = device.enqueue(StreamId::kCompute, this->failing());
  const Event behind =
      device.enqueue(StreamId::kCompute, work_that([&] { compute.push_back(2); }));
  device.wait(StreamId::kReload, failed);
  device.enqueue(StreamId::kReload, work_that([&] { reload.push_back(3); }));
  gate.open();
  try {
    device.synchronize(behind);
    FAIL() << "did not throw";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("[conv2d] no memory for the workspace"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("compute stream"));
  }
  EXPECT_FALSE(device.done(failed));
  EXPECT_FALSE(device.done(behind));
  EXPECT_EQ(this->attempts_, 1);

  // While failed, the device accepts nothing.
  EXPECT_THROW(device.enqueue(StreamId::kReload, work_that([&] { reload.push_back(-1); })),
               DeviceError);
  EXPECT_THROW(device.enqueue_host(StreamId::kOffload, work_that([] {})), DeviceError);
  EXPECT_THROW(device.copy(StreamId::kOffload, {nullptr, nullptr, Bytes(0)}), DeviceError);
  EXPECT_THROW(device.wait(StreamId::kOffload, failed), DeviceError);
  EXPECT_THROW(device.synchronize(Fence()), DeviceError);

  this->broken_ = false;
  device.resume();
  device.synchronize_all();
  EXPECT_EQ(this->attempts_, 2);
  EXPECT_EQ(compute, (std::vector<int>{1, 2}));
  EXPECT_EQ(reload, (std::vector<int>{3}));
  // Tickets continue as if the refused work had never been requested.
  EXPECT_EQ(device.enqueue(StreamId::kReload, work_that([] {})).ticket, 2u);
}

TYPED_TEST_P(DeviceFailureContract, OtherStreamsGoOn) {
  Device& device = *this->device_;
  Gate gate;
  std::atomic<bool> ran{false};
  const Event offloaded = device.enqueue(StreamId::kOffload, gate.work());
  const Event last = device.enqueue(StreamId::kOffload, work_that([&] { ran = true; }));
  // Where time is modelled, polling does not let it pass, but this does.
  device.synchronize(
      device.enqueue(StreamId::kReload, work_that([] {}, 0, Nanos(3'600'000'000'000))));
  device.enqueue(StreamId::kCompute, this->failing());
  this->wait_until_held();
  gate.open();
  while (!device.done(last)) std::this_thread::yield();
  EXPECT_TRUE(device.done(offloaded));
  EXPECT_TRUE(ran);
}

TYPED_TEST_P(DeviceFailureContract, FailsAgainIfTheCauseRemains) {
  Device& device = *this->device_;
  device.enqueue(StreamId::kOffload, this->failing(5));
  for (int i = 1; i <= 3; ++i) {
    this->wait_until_held();
    EXPECT_EQ(this->attempts_, i);
    device.resume();
  }
  this->wait_until_held();
  this->broken_ = false;
  device.resume();
  device.synchronize_all();
  EXPECT_EQ(completions_by_tag(device).size(), 1u);
}

TYPED_TEST_P(DeviceFailureContract, SeveralStreamsFailAndResumeTogether) {
  Device& device = *this->device_;
  Gate gate;
  for (StreamId stream : kAllStreams) {
    device.enqueue(stream, gate.work());
    device.enqueue(stream, this->failing());
  }
  gate.open();
  while (this->attempts_ < 3) std::this_thread::yield();
  this->wait_until_held();
  this->broken_ = false;
  resume_all(device);
  EXPECT_EQ(this->attempts_, 6);
}

TYPED_TEST_P(DeviceFailureContract, AnyExceptionCounts) {
  Device& device = *this->device_;
  std::atomic<bool> first{true};
  device.enqueue(StreamId::kReload, work_that([&] {
                   if (first.exchange(false)) throw 42;
                 }));
  this->wait_until_held();
  device.resume();
  device.synchronize_all();
}

TYPED_TEST_P(DeviceFailureContract, ResumingWhatRunsChangesNothing) {
  Device& device = *this->device_;
  device.resume();
  std::atomic<int> ran{0};
  for (int i = 0; i < 10; ++i) {
    device.enqueue(StreamId::kCompute, work_that([&] { ++ran; }));
    device.resume();
  }
  device.synchronize_all();
  EXPECT_EQ(ran, 10);
}

TYPED_TEST_P(DeviceFailureContract, AFullQueueBehindAFailureThrowsAndDoesNotHang) {
  Device& device = *this->device_;
  Gate gate;
  device.enqueue(StreamId::kCompute, gate.work());
  device.enqueue(StreamId::kCompute, this->failing());
  std::atomic<Ticket> issued{2};
  std::thread opener([&] {
    while (issued < kMaxInFlight) std::this_thread::yield();
    gate.open();
  });
  EXPECT_THROW(
      {
        for (Ticket i = 0; i < 3 * kMaxInFlight; ++i) {
          device.enqueue(StreamId::kCompute, work_that([] {}));
          ++issued;
        }
      },
      DeviceError);
  EXPECT_TRUE(gate.is_open()) << "more than kMaxInFlight was accepted";
  EXPECT_LE(issued, kMaxInFlight + 1);
  opener.join();
  this->broken_ = false;
  device.resume();
  device.synchronize_all();
}

TYPED_TEST_P(DeviceFailureContract, DestructionFinishesWhatIsQueued) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i) {
    const Event event = this->device_->enqueue(StreamId::kCompute, work_that([&] { ++ran; }));
    this->device_->wait(StreamId::kOffload, event);
    this->device_->enqueue(StreamId::kOffload, work_that([&] { ++ran; }));
  }
  this->device_.reset();
  EXPECT_EQ(ran, 100);
}

TYPED_TEST_P(DeviceFailureContract, DestructionGivesUpWhatAFailureHolds) {
  auto held = std::make_shared<int>(0);
  std::atomic<int> ran{0};
  const Event failed = this->device_->enqueue(StreamId::kCompute, this->failing());
  for (StreamId stream : kAllStreams) {
    try {
      this->device_->wait(stream, failed);
      for (int i = 0; i < 10; ++i) {
        this->device_->enqueue(stream, work_that([&ran, held] { ++ran; }));
      }
    } catch (const DeviceError&) {
      // The failure is reported as soon as it is known, possibly while enqueueing.
    }
  }
  this->device_.reset();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(held.use_count(), 1);
}

REGISTER_TYPED_TEST_SUITE_P(DeviceFailureContract, HoldsWhatIsBehindItAndWhatWaitsForIt,
                            OtherStreamsGoOn, FailsAgainIfTheCauseRemains,
                            SeveralStreamsFailAndResumeTogether, AnyExceptionCounts,
                            ResumingWhatRunsChangesNothing,
                            AFullQueueBehindAFailureThrowsAndDoesNotHang,
                            DestructionFinishesWhatIsQueued,
                            DestructionGivesUpWhatAFailureHolds);

}  // namespace tidemark
