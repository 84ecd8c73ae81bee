// Host functions in the order of a stream, and what happens when one fails: it stays where it
// is, on the driver's thread, so that nothing behind it in the stream runs, until it may try
// again.
//
// CUDA allows such a function to wait for the host (though not for CUDA), so a stream can be
// held like this; the issuing thread must then not wait inside CUDA for that stream, and must
// not fill its queue, as launching into a full queue waits too. CudaDevice sees to both.
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

  Progress progress;                // of failures alone
  std::atomic<int64_t> pending{0};  // launched and not finished
  // Acquire: what the tasks wrote is there to be read.
  bool none_pending() const { return pending.load(std::memory_order_acquire) == 0; }
};

// Owned by the issuing thread, which destroys it once it has run: what it holds may be memory
// that only CUDA can take back, and the driver's threads must not call CUDA.
class HostTask {
 public:
  HostTask(std::shared_ptr<HostTasks> tasks, StreamId stream, std::function<void(void*)> run)
      : tasks_(std::move(tasks)), stream_(stream), run_(std::move(run)) {}

  // What launch_host_func() is given, with the task as its argument.
  static void run_it(void* task) { static_cast<HostTask*>(task)->run(); }

 private:
  void run() noexcept;

  const std::shared_ptr<HostTasks> tasks_;
  const StreamId stream_;
  std::function<void(void*)> run_;
};

}  // namespace tidemark
