#include "runtime/device/cuda/host_task.h"

#include <exception>
#include <string>

namespace tidemark {

void HostTask::run() noexcept {
  // False if the device is being destroyed after a failure: the remaining tasks must not run.
  bool go_on = tasks_->progress.worker_wait(Fence());
  while (go_on) {
    std::string cause;
    try {
      run_(nullptr);
      break;
    } catch (const std::exception& error) {
      cause = error.what();
    } catch (...) {
      cause = "unknown exception";
    }
    go_on = tasks_->progress.fail_and_wait(stream_, cause);
  }
  // Release: a thread that sees the decrement sees what the task wrote.
  tasks_->pending.fetch_sub(1, std::memory_order_release);
}

}  // namespace tidemark
