#include "runtime/device/cpu/progress.h"

#include "runtime/device/pages.h"

namespace tidemark {

void Progress::complete(StreamId stream, Ticket ticket) {
  // Sequentially consistent, as are a waiter's accesses. This thread writes completed_ and then
  // reads wake_at_; a waiter writes wake_at_ and then reads completed_. At least one must see
  // the other's write, or the waiter would sleep on.
  completed_[index(stream)].store(ticket, std::memory_order_seq_cst);
  if (wake_at_[index(stream)].load(std::memory_order_seq_cst) > ticket) return;
  MutexLock lock(mutex_);
  wake_at_[index(stream)].store(kNobody, std::memory_order_seq_cst);
  changed_.notify_all();
}

void Progress::ask_to_be_woken(const Fence& fence) {
  for (StreamId stream : kAllStreams) {
    std::atomic<Ticket>& wake_at = wake_at_[index(stream)];
    // Relaxed: wake_at is written only under the lock.
    if (fence[stream] > completed(stream) &&
        fence[stream] < wake_at.load(std::memory_order_relaxed)) {
      wake_at.store(fence[stream], std::memory_order_seq_cst);
    }
  }
}

bool Progress::worker_wait(const Fence& fence) {
  MutexLock lock(mutex_);
  while (!abandoned()) {
    ask_to_be_woken(fence);
    if (done(fence)) return true;
    changed_.wait(mutex_);
  }
  return false;
}

void Progress::host_wait(const Fence& fence) {
  MutexLock lock(mutex_);
  while (true) {
    if (failures_ > 0) throw_failure_locked();
    ask_to_be_woken(fence);
    if (done(fence)) return;
    changed_.wait(mutex_);
  }
}

bool Progress::fail_and_wait(StreamId stream, const std::string& cause, bool no_memory) {
  MutexLock lock(mutex_);
  causes_[index(stream)] = cause;
  no_memory_ = no_memory_ || no_memory;
  ++failures_;
  failed_.store(true, std::memory_order_release);
  changed_.notify_all();
  const uint64_t before = resumed_;
  while (resumed_ == before && !shutting_down_) changed_.wait(mutex_);
  return !shutting_down_;
}

void Progress::resume() {
  MutexLock lock(mutex_);
  causes_ = {};
  failures_ = 0;
  no_memory_ = false;
  ++resumed_;
  // Relaxed: the thread that reads failed_ is the one that calls this.
  failed_.store(false, std::memory_order_relaxed);
  changed_.notify_all();
}

void Progress::shut_down() {
  MutexLock lock(mutex_);
  shutting_down_ = true;
  changed_.notify_all();
}

void Progress::throw_failure() const {
  MutexLock lock(mutex_);
  throw_failure_locked();
}

void Progress::throw_failure_locked() const {
  // The cause comes first: its text starts with the operator.
  std::string message;
  for (StreamId stream : kAllStreams) {
    const std::optional<std::string>& cause = causes_[index(stream)];
    if (!cause) continue;
    if (!message.empty()) message += "; ";
    message +=
        *cause + " (" + device_name_ + ", " + std::string(to_string(stream)) + " stream)";
  }
  if (no_memory_) throw HostMemoryError(message);
  throw DeviceError(message);
}

}  // namespace tidemark
