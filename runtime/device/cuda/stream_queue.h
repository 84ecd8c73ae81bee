// One stream of a GPU: its tickets, the events that mark its progress, and their times.
//
// CUDA's events are objects; ours are places in a queue. A *mark* is a place at which a CUDA
// event has been recorded. Timed work records a mark behind it. For other work, a mark is
// recorded at the end of the queue at the first query, never earlier than the work asked about,
// and behind every 256th ticket without one.
// Marks are read in order, without waiting, and their events are reused.
//
//   tickets   1    2    3    4    5            marks are at 2, 3 and 5;
//            [ ]  [t]  [t]  [ ]  [ ]           a wait for 4 waits for the mark at 5;
//                 ^ |  ^ |       ^             work 3 began when 2 ended, so it needs no event
//                   +--+                       of its own to say when
//
// Threads: the issuing thread. Errors: methods that talk to the driver throw DeviceError,
// except those that say otherwise.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/host_task.h"
#include "runtime/device/device.h"
#include "runtime/device/stream.h"

namespace tidemark {

// Throws DeviceError, naming the call, unless the status is ok.
void check_driver(const CudaDriver& driver, DriverStatus status, const char* call);

// Converts moments on the GPU to the device's clock. The clocks are tied at an event whose host
// time is known. CUDA reports differences in single precision, so the tie moves along.
class GpuClock {
 public:
  explicit GpuClock(CudaDriver& driver);
  ~GpuClock();
  GpuClock(const GpuClock&) = delete;
  GpuClock& operator=(const GpuClock&) = delete;

  // Waits for `stream`. REQUIRES: the stream is idle or soon will be.
  void tie(DriverStream stream);
  Nanos now() const;
  // REQUIRES: `event` is done. May keep `event` and replace it with another.
  Nanos time_of(DriverEvent& event);

 private:
  CudaDriver& driver_;
  const int64_t origin_;
  DriverEvent tied_ = nullptr;
  Nanos tied_at_{0};
};

class StreamQueue {
 public:
  StreamQueue(CudaDriver& driver, GpuClock& clock, StreamId id);
  // Does not wait. REQUIRES: the stream has been synchronized, or its context is lost.
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  DriverStream native() const { return native_; }
  Ticket issued() const { return issued_; }
  // The last ticket known to be done; look() updates it.
  Ticket completed() const { return completed_; }
  // Commands given to CUDA, including events and waits, not known to be done.
  int64_t commands_in_flight() const { return commands_ - commands_completed_; }
  void count_commands(int64_t n) { commands_ += n; }

  // Reads finished marks. Does not throw: returns a failure of the GPU as the status.
  DriverStatus look();
  // The event of the first mark at or after `ticket`; records one now if there is none.
  DriverEvent event_for(Ticket ticket);
  // An event after all work given to the stream so far.
  DriverEvent event_at_end();
  size_t marks() const { return marks_.size(); }

  // begin() and end() enclose the commands of one ticket.
  struct Begun {
    uint64_t tag = 0;
    bool timed = false;
    bool starts_at_last_end = false;  // else at `start`
    DriverEvent start = nullptr;
    bool stalls_from_last_end = false;  // else from `stall`, if there is one
    DriverEvent stall = nullptr;
  };
  // Makes the stream wait for `events` first; the time of that wait counts as a stall.
  Begun begin(uint64_t tag, const std::vector<DriverEvent>& events);
  Event end(const Begun& begun);
  // Instead of end(), if the work was not enqueued. Does not throw.
  void abandon(const Begun& begun);

  // Keeps `task` until it has run. REQUIRES: after begin().
  HostTask* keep(std::unique_ptr<HostTask> task);

  Nanos stalled() const { return stalled_; }
  void take_completions(std::vector<Completion>& into);

 private:
  struct Mark {
    Ticket ticket = 0;
    DriverEvent done = nullptr;
    Begun work{};
    int64_t commands = 0;
    std::vector<std::unique_ptr<HostTask>> tasks;
  };

  DriverEvent take_event();
  void give_back(DriverEvent event);
  DriverEvent record();
  // True if the last mark ends the queue and is not reached yet, so its end is "now".
  bool busy_at_end();
  void push_mark(const Begun& begun);
  void read(Mark& mark);

  static constexpr size_t kMaxCompletions = 1 << 16;
  // Tickets from mark to mark at most, so that a wait for the middle of a long queue does not
  // wait for its end.
  static constexpr Ticket kMaxUnmarked = 256;

  CudaDriver& driver_;
  GpuClock& clock_;
  const StreamId id_;
  DriverStream native_ = nullptr;
  Ticket issued_ = 0;
  Ticket completed_ = 0;
  int64_t commands_ = 0;
  int64_t commands_completed_ = 0;
  int64_t commands_marked_ = 0;  // commands_ at the last mark
  std::deque<Mark> marks_;
  std::vector<std::unique_ptr<HostTask>> tasks_;  // since the last mark
  std::vector<DriverEvent> idle_events_;
  Nanos last_end_{0};  // the last mark read
  Nanos stalled_{0};
  std::vector<Completion> completions_;
};

}  // namespace tidemark
