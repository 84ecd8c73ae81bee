// One stream of a CPU device: a queue and the thread that empties it.
//
// The issuing thread pushes; the worker takes the whole queue in one swap and runs it without
// the lock. Work carries the fence it must wait for, so a wait costs nothing until work follows
// it. Objects that the work holds are destroyed on the worker, before the work counts as done.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/core/thread_annotations.h"
#include "runtime/device/cpu/progress.h"
#include "runtime/device/device.h"

namespace tidemark {

// Time since the device was made.
class CpuClock {
 public:
  Nanos now() const {
    return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::steady_clock::now() - start_)
                     .count());
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class CpuWorker {
 public:
  // `progress` and `clock` must outlive the worker. `at_start` runs on the thread before any
  // work.
  CpuWorker(StreamId stream, Progress& progress, const CpuClock& clock,
            std::function<void()> at_start);
  // Runs queued work first, unless a failure blocks it; work that waits for failed work is then
  // destroyed without running. REQUIRES: progress.shut_down() has been called.
  ~CpuWorker();

  // Issuing thread only. Does not wait; the caller keeps the queue short.
  void push(std::function<void(void*)> run, const Fence& fence, uint64_t tag) EXCLUDES(mutex_);

  // Issuing thread only.
  Nanos stalled() const {
    // Relaxed: a number for reports, which orders nothing.
    return Nanos(stalled_.load(std::memory_order_relaxed));
  }
  void take_completions(std::vector<Completion>& into) EXCLUDES(mutex_);

 private:
  struct Item {
    std::function<void(void*)> run;
    Fence fence;
    uint64_t tag;
  };
  // Enough for the tagged work of several steps; 2 MiB at most.
  static constexpr size_t kMaxCompletions = 1 << 16;

  void loop();
  bool take_batch(std::vector<Item>& batch) EXCLUDES(mutex_);
  bool run(Item& item) EXCLUDES(mutex_);

  const StreamId stream_;
  Progress& progress_;
  const CpuClock& clock_;
  Ticket next_ticket_ = 1;  // the worker's
  std::atomic<int64_t> stalled_{0};

  Mutex mutex_;
  CondVar filled_;
  std::vector<Item> queue_ GUARDED_BY(mutex_);
  bool idle_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::vector<Completion> completions_ GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all members above
};

}  // namespace tidemark
