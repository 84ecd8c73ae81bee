#include "runtime/device/cuda/host_task.h"

#include <exception>
#include <string>

#include "runtime/device/cuda/stream_queue.h"

namespace tidemark {

HostWorker::HostWorker(std::shared_ptr<CudaDriver> driver, std::shared_ptr<HostTasks> tasks,
                       StreamId stream)
    : driver_(std::move(driver)), tasks_(std::move(tasks)), stream_(stream) {
  check_driver(*driver_, driver_->create_counter(&done_), "cudaHostAlloc of a counter");
  thread_ = std::thread([this] { work(); });
}

HostWorker::~HostWorker() {
  stop();
  (void)driver_->destroy_counter(done_);
}

void HostWorker::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void HostWorker::launch(HostTask& task, DriverStream native) {
  task.number = ++issued_;
  // Relaxed: the driver orders what the task reads.
  tasks_->pending.fetch_add(1, std::memory_order_relaxed);
  const DriverStatus status = driver_->launch_host_func(native, &HostWorker::arrived, &task);
  if (!status.ok()) tasks_->pending.fetch_sub(1, std::memory_order_relaxed);
  check_driver(*driver_, status, "cudaLaunchHostFunc");
  check_driver(*driver_, driver_->wait_counter(native, done_, task.number),
               "cuStreamWaitValue32");
}

void HostWorker::arrived(void* task) {
  HostWorker& worker = static_cast<HostTask*>(task)->worker;
  MutexLock lock(worker.mutex_);
  worker.arrived_.push_back(static_cast<HostTask*>(task));
  worker.changed_.notify_one();
}

void HostWorker::work() {
  while (true) {
    HostTask* task = nullptr;
    {
      MutexLock lock(mutex_);
      while (arrived_.empty() && !stopping_) changed_.wait(mutex_);
      if (arrived_.empty()) return;
      task = arrived_.front();
      arrived_.pop_front();
    }
    run(*task);
  }
}

void HostWorker::run(HostTask& task) noexcept {
  // False if the device is being destroyed after a failure: the remaining tasks must not run.
  bool go_on = tasks_->progress.worker_wait(Fence());
  while (go_on) {
    std::string cause;
    try {
      task.run(nullptr);
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
  // Last: the task may be destroyed once the stream goes on. Release, for the copies behind it.
  const uint32_t number = task.number;
  done_->store(number, std::memory_order_release);
}

}  // namespace tidemark
