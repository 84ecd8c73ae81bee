// Host functions in stream order, each stream's on a thread of its own. A function that fails
// waits on that thread until it may try again, so that nothing behind it in the stream runs.
//
// CUDA may run the host functions of all streams one after the other on one thread. What it is
// given therefore only tells the stream's HostWorker that the stream has come so far; the
// stream then waits for a counter that the worker raises. The issuing thread must not wait
// inside CUDA for a stream that is held, nor fill its queue, because launching into a full
// queue also waits. CudaDevice ensures both.
//
//   stream   ... | arrived(task) | wait: counter >= 7 | ...
//   worker                       | run the task, counter = 7 |
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "runtime/core/thread_annotations.h"
#include "runtime/device/cpu/progress.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/stream.h"

namespace tidemark {

// Shared by a device and its tasks. Threads: any.
struct HostTasks {
  explicit HostTasks(std::string device_name) : progress(std::move(device_name)) {}

  Progress progress;                // of failures only
  std::atomic<int64_t> pending{0};  // launched and unfinished
  // Acquire: makes the tasks' writes visible.
  bool none_pending() const { return pending.load(std::memory_order_acquire) == 0; }
};

class HostWorker;

// Owned by the issuing thread, which destroys it after it has run: it may hold memory that only
// CUDA can free, for which CUDA may wait for the stream that waits for the task.
struct HostTask {
  HostWorker& worker;
  std::function<void(void*)> run;
  uint32_t number = 0;  // in the stream, from 1
};

// Runs one stream's tasks, in order. Threads: the issuing thread.
class HostWorker {
 public:
  // Throws DeviceError.
  HostWorker(std::shared_ptr<CudaDriver> driver, std::shared_ptr<HostTasks> tasks,
             StreamId stream);
  ~HostWorker();  // after stop()
  HostWorker(const HostWorker&) = delete;
  HostWorker& operator=(const HostWorker&) = delete;

  // Enqueues the task on `native`, the worker's stream, as two commands. Throws DeviceError.
  void launch(HostTask& task, DriverStream native);

  // Ends the thread. REQUIRES: the stream has been synchronized, or its context is lost.
  void stop();

 private:
  static void arrived(void* task);
  void work();
  void run(HostTask& task) noexcept;

  const std::shared_ptr<CudaDriver> driver_;
  const std::shared_ptr<HostTasks> tasks_;
  const StreamId stream_;
  std::atomic<uint32_t>* done_ = nullptr;
  uint32_t issued_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::deque<HostTask*> arrived_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tidemark
