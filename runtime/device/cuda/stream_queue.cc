#include "runtime/device/cuda/stream_queue.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

int64_t host_nanos() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Errors from cudaErrorIllegalAddress (700) on leave the context unusable.
constexpr int kFirstFatalStatus = 700;

// A second after the reference event, single precision still resolves 0.06 us.
constexpr Nanos kTieFor{1'000'000'000};

}  // namespace

void check_driver(const CudaDriver& driver, DriverStatus status, const char* call) {
  if (status.ok()) return;
  std::string message = std::string(call) + ": " + driver.describe(status);
  if (status.code >= kFirstFatalStatus) {
    message +=
        "; work issued earlier failed on the GPU, which this process can no longer use (set "
        "CUDA_LAUNCH_BLOCKING=1 to see which operator failed)";
  }
  throw DeviceError(message);
}

GpuClock::GpuClock(CudaDriver& driver) : driver_(driver), origin_(host_nanos()) {}

GpuClock::~GpuClock() {
  if (tied_) (void)driver_.destroy_event(tied_);
}

Nanos GpuClock::now() const { return Nanos(host_nanos() - origin_); }

void GpuClock::tie(DriverStream stream) {
  if (!tied_) {
    check_driver(driver_, driver_.create_event(&tied_, /*timed=*/true), "cudaEventCreate");
  }
  const Nanos before = now();
  check_driver(driver_, driver_.record(tied_, stream), "cudaEventRecord");
  check_driver(driver_, driver_.synchronize_event(tied_), "cudaEventSynchronize");
  tied_at_ = before + Nanos((now() - before).count() / 2);
}

Nanos GpuClock::time_of(DriverEvent& event) {
  float ms = 0;
  check_driver(driver_, driver_.elapsed_ms(&ms, tied_, event), "cudaEventElapsedTime");
  Nanos time = tied_at_ + Nanos(std::llround(static_cast<double>(ms) * 1e6));
  // The clocks drift by parts in a million, and completed work cannot have ended after now.
  if (const Nanos ahead = time - now(); ahead > Nanos(0)) {
    tied_at_ -= ahead;
    time -= ahead;
  }
  if (time - tied_at_ > kTieFor) {
    std::swap(tied_, event);
    tied_at_ = time;
  }
  return time;
}

StreamQueue::StreamQueue(CudaDriver& driver, GpuClock& clock, StreamId id)
    : driver_(driver), clock_(clock), id_(id) {
  check_driver(driver_, driver_.create_stream(&native_), "cudaStreamCreateWithFlags");
}

StreamQueue::~StreamQueue() {
  for (const Mark& mark : marks_) {
    for (DriverEvent event : {mark.done, mark.work.start, mark.work.stall}) {
      if (event) (void)driver_.destroy_event(event);
    }
  }
  for (DriverEvent event : idle_events_) (void)driver_.destroy_event(event);
  (void)driver_.destroy_stream(native_);
}

DriverEvent StreamQueue::take_event() {
  if (idle_events_.empty()) {
    DriverEvent event = nullptr;
    check_driver(driver_, driver_.create_event(&event, /*timed=*/true), "cudaEventCreate");
    return event;
  }
  DriverEvent event = idle_events_.back();
  idle_events_.pop_back();
  return event;
}

void StreamQueue::give_back(DriverEvent event) {
  if (event) idle_events_.push_back(event);
}

DriverEvent StreamQueue::record() {
  DriverEvent event = take_event();
  const DriverStatus status = driver_.record(event, native_);
  if (!status.ok()) give_back(event);
  check_driver(driver_, status, "cudaEventRecord");
  ++commands_;
  return event;
}

bool StreamQueue::busy_at_end() {
  return !marks_.empty() && commands_marked_ == commands_ &&
         driver_.query(marks_.back().done) == kDriverNotReady;
}

StreamQueue::Begun StreamQueue::begin(uint64_t tag, const std::vector<DriverEvent>& events) {
  Begun begun;
  begun.tag = tag;
  begun.timed = tag != 0 || !events.empty();
  try {
    if (!events.empty()) {
      begun.stalls_from_last_end = busy_at_end();
      if (!begun.stalls_from_last_end) begun.stall = record();
      for (DriverEvent event : events) {
        check_driver(driver_, driver_.wait(native_, event), "cudaStreamWaitEvent");
        ++commands_;
      }
      begun.start = record();
    } else if (tag != 0) {
      begun.starts_at_last_end = busy_at_end();
      if (!begun.starts_at_last_end) begun.start = record();
    }
  } catch (...) {
    abandon(begun);
    throw;
  }
  return begun;
}

void StreamQueue::push_mark(const Begun& begun) {
  // The mark is added first, so that nothing is lost if recording fails.
  marks_.emplace_back();
  Mark& mark = marks_.back();
  try {
    mark.done = record();
  } catch (...) {
    marks_.pop_back();
    throw;
  }
  mark.ticket = issued_;
  mark.work = begun;
  mark.commands = commands_marked_ = commands_;
  mark.tasks = std::exchange(tasks_, {});
}

Event StreamQueue::end(const Begun& begun) {
  ++issued_;
  const Ticket marked = marks_.empty() ? completed_ : marks_.back().ticket;
  if (begun.timed || !tasks_.empty() || issued_ - marked >= kMaxUnmarked) {
    try {
      push_mark(begun);
    } catch (...) {
      --issued_;
      throw;
    }
  }
  return {id_, issued_};
}

void StreamQueue::abandon(const Begun& begun) {
  give_back(begun.start);
  give_back(begun.stall);
}

HostTask* StreamQueue::keep(std::unique_ptr<HostTask> task) {
  tasks_.push_back(std::move(task));
  return tasks_.back().get();
}

DriverEvent StreamQueue::event_for(Ticket ticket) {
  auto mark = std::lower_bound(marks_.begin(), marks_.end(), ticket,
                               [](const Mark& m, Ticket t) { return m.ticket < t; });
  if (mark != marks_.end()) return mark->done;
  push_mark({});
  return marks_.back().done;
}

DriverEvent StreamQueue::event_at_end() {
  if (marks_.empty() || commands_marked_ != commands_) push_mark({});
  return marks_.back().done;
}

DriverStatus StreamQueue::look() {
  while (!marks_.empty()) {
    Mark& mark = marks_.front();
    const DriverStatus status = driver_.query(mark.done);
    if (status == kDriverNotReady) return kDriverOk;
    if (!status.ok()) return status;
    read(mark);
    marks_.pop_front();
  }
  return kDriverOk;
}

void StreamQueue::read(Mark& mark) {
  completed_ = mark.ticket;
  commands_completed_ = mark.commands;
  Begun& work = mark.work;
  if (work.timed) {
    const Nanos before = last_end_;
    try {
      Nanos start = work.starts_at_last_end ? before : clock_.time_of(work.start);
      Nanos stall = start;
      if (work.stalls_from_last_end) stall = before;
      if (work.stall) stall = clock_.time_of(work.stall);
      if (start > stall) stalled_ += start - stall;
      last_end_ = std::max(before, clock_.time_of(mark.done));
      start = std::clamp(start, before, last_end_);
      if (work.tag != 0 && !completions_.empty() && completions_.back().tag == work.tag) {
        completions_.back().end = last_end_;  // another piece of the same work
      } else if (work.tag != 0 && completions_.size() < kMaxCompletions) {
        completions_.push_back({work.tag, id_, start, last_end_});
      }
    } catch (const DeviceError&) {
      // A completion whose time cannot be read is dropped; the next call reports the error.
    }
  } else {
    try {
      last_end_ = std::max(last_end_, clock_.time_of(mark.done));
    } catch (const DeviceError&) {
    }
  }
  abandon(work);
  give_back(mark.done);
}

void StreamQueue::take_completions(std::vector<Completion>& into) {
  into.insert(into.end(), completions_.begin(), completions_.end());
  completions_.clear();
}

}  // namespace tidemark
