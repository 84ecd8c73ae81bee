// A device around a device that fails on demand, delays copies, and counts calls.
//
// Faults and delays need work that runs, so they have no effect around a simulator; counting
// works around any device. A delayed or failing copy runs as a host task of the inner device; a
// failing one moves half of its bytes first.
//
// Threads: as Device; heal() is called by the issuing thread too.
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

  // Makes the n-th call from now, from 1, of this kind on this stream fail.
  void fail(CallKind kind, StreamId stream, int64_t nth, FaultTimes times = FaultTimes::kOnce);
  // Ends all faults, including those of work already enqueued. The caller has to resume.
  void heal();
  // Before each copy from now on, keeps the worker busy for a random time up to `longest`; 0
  // turns this off.
  void delay_copies(uint64_t seed, Nanos longest);
  // Calls since the device was made.
  int64_t calls(CallKind kind, StreamId stream) const { return count(kind, stream); }
  // Attempts that have failed by a fault.
  int64_t faults() const { return fired_->load(); }

  Event enqueue(StreamId stream, Work work) override;
  Event enqueue_host(StreamId stream, Work work) override;
  Event copy(StreamId stream, const Copy& copy) override;

 private:
  struct Fault {
    CallKind kind;
    StreamId stream;
    int64_t nth;  // counted from when the device was made
    FaultTimes times;
    std::atomic<bool> armed{true};  // shared with the workers

    bool fires() { return times == FaultTimes::kAlways ? armed.load() : armed.exchange(false); }
  };

  const int64_t& count(CallKind kind, StreamId stream) const {
    return calls_[static_cast<size_t>(kind)][static_cast<size_t>(stream)];
  }
  // Counts a call; returns the fault that the call must suffer, if any.
  std::shared_ptr<Fault> next_call(CallKind kind, StreamId stream);
  Work with_fault(Work work, CallKind kind, StreamId stream);

  std::array<std::array<int64_t, kStreamCount>, kCallKindCount> calls_{};
  std::vector<std::shared_ptr<Fault>> faults_;
  std::shared_ptr<std::atomic<int64_t>> fired_ = std::make_shared<std::atomic<int64_t>>(0);
  std::mt19937_64 random_;
  Nanos longest_delay_{0};
};

// Timing costs time there, as on a GPU.
class CostlyTiming final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  bool timing_costs() const override { return true; }
};

// Work whose fault is healed may have been tried once more before that, and be about to report
// a failure. Resumes until all enqueued work is done.
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
