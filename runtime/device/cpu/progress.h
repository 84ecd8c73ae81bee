// How far each stream of a CPU device has come, and who is waiting for it to come further.
//
// One mutex and one condition variable serve all waits, which are rare; finishing work that
// nobody waits for costs one store and one load. A waiter leaves in `wake_at_` the first ticket
// it cares about, so that work before it wakes nobody.
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
    // Sees what the work wrote, by the release in complete(); sequentially consistent for the
    // sake of waits, see there.
    return completed_[index(stream)].load(std::memory_order_seq_cst);
  }

  // By the worker of `stream`, in the order of tickets.
  void complete(StreamId stream, Ticket ticket) EXCLUDES(mutex_);
  // By a worker whose work threw: reports it, then waits. True: try again; false: give up, the
  // device is being destroyed. `no_memory`: the host had none to give.
  bool fail_and_wait(StreamId stream, const std::string& cause, bool no_memory = false)
      EXCLUDES(mutex_);
  // By a worker, before work that depends on `fence`. False: give up.
  bool worker_wait(const Fence& fence) EXCLUDES(mutex_);

  // A stream is held by a failure.
  bool failed() const {
    // Acquire: pairs with the release in fail_and_wait(), so that the cause is there to be
    // read.
    return failed_.load(std::memory_order_acquire);
  }
  // By the issuing thread. Each throws DeviceError while a stream is held by a failure;
  // HostMemoryError if host memory ran out.
  void check() const EXCLUDES(mutex_) {
    if (failed()) throw_failure();
  }
  void host_wait(const Fence& fence) EXCLUDES(mutex_);

  void resume() EXCLUDES(mutex_);
  // From now on a failure, present or to come, ends all waits of workers.
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
  bool no_memory_ GUARDED_BY(mutex_) = false;  // the cause of one of them
  uint64_t resumed_ GUARDED_BY(mutex_) = 0;    // times
  bool shutting_down_ GUARDED_BY(mutex_) = false;
};

}  // namespace tidemark
