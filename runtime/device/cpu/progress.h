// The progress of each stream of a CPU device, and the threads waiting for it.
//
// One mutex and one condition variable serve all waits, which are rare. Finishing work without
// waiters costs one store and one load. A waiter stores the first ticket that it needs in
// `wake_at_`, so that earlier work wakes nobody.
//
// Threads: any, except where a method says otherwise.
#pragma once

#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/thread_annotations.h"
#include "runtime/device/stream.h"

namespace tidemark {

class Progress {
 public:
  explicit Progress(std::string device_name) : device_name_(std::move(device_name)) {}

  bool done(const Fence& fence) const {
    for (StreamId stream : kAllStreams) {
      if (fence[stream] > completed(stream)) return false;
    }
    return true;
  }
  Ticket completed(StreamId stream) const {
    // Makes the work's writes visible, by the release in complete(); sequentially consistent
    // because of waits, see there.
    return completed_[index(stream)].load(std::memory_order_seq_cst);
  }

  // Called by the worker of `stream`, in the order of tickets.
  void complete(StreamId stream, Ticket ticket) EXCLUDES(mutex_);
  // Called by a worker whose work threw: reports the failure, then waits. True: try again;
  // false: stop, the device is being destroyed. `no_memory`: the host was out of memory.
  bool fail_and_wait(StreamId stream, const std::string& cause, bool no_memory = false)
      EXCLUDES(mutex_);
  // Called by a worker before work that depends on `fence`. False: stop.
  bool worker_wait(const Fence& fence) EXCLUDES(mutex_);

  // Whether a failure holds a stream.
  bool failed() const {
    // Acquire: pairs with the release in fail_and_wait(), which makes the cause visible.
    return failed_.load(std::memory_order_acquire);
  }
  // Issuing thread only. Each throws DeviceError while a failure holds a stream;
  // HostMemoryError if host memory ran out.
  void check() const EXCLUDES(mutex_) {
    if (failed()) throw_failure();
  }
  void host_wait(const Fence& fence) EXCLUDES(mutex_);

  void resume() EXCLUDES(mutex_);
  // From now on, a present or future failure ends all waits of workers.
  void shut_down() EXCLUDES(mutex_);

 private:
  static constexpr Ticket kNobody = std::numeric_limits<Ticket>::max();
  static size_t index(StreamId stream) { return static_cast<size_t>(stream); }
  void ask_to_be_woken(const Fence& fence) REQUIRES(mutex_);
  bool abandoned() const REQUIRES(mutex_) { return shutting_down_ && failures_ > 0; }
  [[noreturn]] void throw_failure() const EXCLUDES(mutex_);
  [[noreturn]] void throw_failure_locked() const REQUIRES(mutex_);

  const std::string device_name_;
  std::array<std::atomic<Ticket>, kStreamCount> completed_{};
  std::array<std::atomic<Ticket>, kStreamCount> wake_at_{kNobody, kNobody, kNobody};
  std::atomic<bool> failed_{false};

  mutable Mutex mutex_;
  CondVar changed_;
  std::array<std::optional<std::string>, kStreamCount> causes_ GUARDED_BY(mutex_);
  int failures_ GUARDED_BY(mutex_) = 0;
  bool no_memory_ GUARDED_BY(mutex_) = false;  // the cause of a failure
  uint64_t resumed_ GUARDED_BY(mutex_) = 0;    // number of resumptions
  bool shutting_down_ GUARDED_BY(mutex_) = false;
};

}  // namespace tidemark
