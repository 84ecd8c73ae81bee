// Host functions in stream order. A function that fails waits on the driver's thread until it
// may try again, so that nothing behind it in the stream runs.
//
// CUDA allows such a function to wait for the host (though not for CUDA), so a stream can be
// held this way. The issuing thread must then not wait inside CUDA for that stream, nor fill
// its queue, because launching into a full queue also waits. CudaDevice ensures both.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/device/cpu/progress.h"
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

// Owned by the issuing thread, which destroys it after it has run: it may hold memory that only
// CUDA can free, and the driver's threads must not call CUDA.
class HostTask {
 public:
  HostTask(std::shared_ptr<HostTasks> tasks, StreamId stream, std::function<void(void*)> run)
      : tasks_(std::move(tasks)), stream_(stream), run_(std::move(run)) {}

  // The function for launch_host_func(), with the task as its argument.
  static void run_it(void* task) { static_cast<HostTask*>(task)->run(); }

 private:
  void run() noexcept;

  const std::shared_ptr<HostTasks> tasks_;
  const StreamId stream_;
  std::function<void(void*)> run_;
};

}  // namespace tidemark
