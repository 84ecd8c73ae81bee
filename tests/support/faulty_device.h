// A device around a device: fails what it is told to fail, delays copies, and counts calls.
//
// Faults and delays need work that runs, so they do nothing around a simulator; counting works
// around any device. A copy that is delayed or fails runs as a host task of the inner device;
// one that fails has moved half of its bytes by then.
//
// Threads: as Device; heal() is the issuing thread's too.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "runtime/device/forwarding_device.h"

namespace tidemark {

enum class CallKind : uint8_t { kKernel, kHostTask, kCopy };
inline constexpr size_t kCallKindCount = 3;

enum class FaultTimes : uint8_t {
  kOnce,    // the first attempt at the n-th call
  kAlways,  // each attempt at the n-th call and at those after it, until heal()
};

class FaultyDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  // The n-th call from now, from 1, of this kind on this stream.
  void fail(CallKind kind, StreamId stream, int64_t nth, FaultTimes times = FaultTimes::kOnce);
  // Ends all faults, of work already enqueued too; resuming is the caller's.
  void heal();
  // Before each copy from now on the worker is kept busy for a random time up to `longest`; 0:
  // off.
  void delay_copies(uint64_t seed, Nanos longest);
  // Since the device was made.
  int64_t calls(CallKind kind, StreamId stream) const { return count(kind, stream); }
  // Attempts at work that have been failed.
  int64_t faults() const { return fired_->load(); }

  Event enqueue(StreamId stream, Work work) override;
  Event enqueue_host(StreamId stream, Work work) override;
  Event copy(StreamId stream, const Copy& copy) override;

 private:
  struct Fault {
    CallKind kind;
    StreamId stream;
    int64_t nth;  // as counted since the device was made
    FaultTimes times;
    std::atomic<bool> armed{true};  // shared with the workers

    bool fires() { return times == FaultTimes::kAlways ? armed.load() : armed.exchange(false); }
  };

  const int64_t& count(CallKind kind, StreamId stream) const {
    return calls_[static_cast<size_t>(kind)][static_cast<size_t>(stream)];
  }
  // Counts a call; the fault that it is to suffer, if any.
  std::shared_ptr<Fault> next_call(CallKind kind, StreamId stream);
  Work with_fault(Work work, CallKind kind, StreamId stream);

  std::array<std::array<int64_t, kStreamCount>, kCallKindCount> calls_{};
  std::vector<std::shared_ptr<Fault>> faults_;
  std::shared_ptr<std::atomic<int64_t>> fired_ = std::make_shared<std::atomic<int64_t>>(0);
  std::mt19937_64 random_;
  Nanos longest_delay_{0};
};

// Work whose cause of failure is gone may have been tried once more before that, and be on its
// way to report it: resumes until all that was enqueued is done.
inline void resume_all(Device& device) {
  while (true) {
    device.resume();
    try {
      device.synchronize_all();
      return;
    } catch (const DeviceError&) {
    }
  }
}

}  // namespace tidemark
