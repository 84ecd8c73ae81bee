#include "runtime/device/cpu/worker.h"

#include <exception>
#include <new>
#include <utility>

#include "runtime/device/pages.h"

namespace tidemark {

CpuWorker::CpuWorker(StreamId stream, Progress& progress, const CpuClock& clock,
                     std::function<void()> at_start)
    : stream_(stream),
      progress_(progress),
      clock_(clock),
      thread_([this, at_start = std::move(at_start)] {
        at_start();
        loop();
      }) {}

CpuWorker::~CpuWorker() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    filled_.notify_one();
  }
  thread_.join();
}

void CpuWorker::push(std::function<void(void*)> run, const Fence& fence, uint64_t tag) {
  bool idle;
  {
    MutexLock lock(mutex_);
    queue_.push_back({std::move(run), fence, tag});
    idle = std::exchange(idle_, false);
  }
  if (idle) filled_.notify_one();
}

void CpuWorker::take_completions(std::vector<Completion>& into) {
  MutexLock lock(mutex_);
  into.insert(into.end(), completions_.begin(), completions_.end());
  completions_.clear();
}

void CpuWorker::loop() {
  std::vector<Item> batch;
  while (take_batch(batch)) {
    for (Item& item : batch) {
      if (!run(item)) return;
    }
  }
}

bool CpuWorker::take_batch(std::vector<Item>& batch) {
  batch.clear();
  MutexLock lock(mutex_);
  while (queue_.empty()) {
    if (closed_) return false;
    idle_ = true;
    filled_.wait(mutex_);
  }
  idle_ = false;
  batch.swap(queue_);
  return true;
}

bool CpuWorker::run(Item& item) {
  if (!progress_.done(item.fence)) {
    const Nanos before = clock_.now();
    if (!progress_.worker_wait(item.fence)) return false;
    stalled_.fetch_add((clock_.now() - before).count(), std::memory_order_relaxed);
  }
  Nanos start;
  while (true) {
    start = item.tag != 0 ? clock_.now() : Nanos(0);
    std::string cause;
    bool no_memory = false;
    try {
      item.run(nullptr);
      break;
    } catch (const HostMemoryError& error) {
      cause = error.what();
      no_memory = true;
    } catch (const std::bad_alloc&) {
      cause = "host memory ran out";
      no_memory = true;
    } catch (const std::exception& error) {
      cause = error.what();
    } catch (...) {
      cause = "unknown exception";
    }
    if (!progress_.fail_and_wait(stream_, cause, no_memory)) return false;
  }
  if (item.tag != 0) {
    // Recorded before the work counts as done, so that a caller that has synchronized finds it.
    const Completion completion{item.tag, stream_, start, clock_.now()};
    MutexLock lock(mutex_);
    if (!completions_.empty() && completions_.back().tag == item.tag) {
      completions_.back().end = completion.end;  // another part of the same work
    } else if (completions_.size() < kMaxCompletions) {
      completions_.push_back(completion);
    }
  }
  item.run = nullptr;
  progress_.complete(stream_, next_ticket_++);
  return true;
}

}  // namespace tidemark
