// Limits on a planner's work.
//
// A node budget gives the same plan on every machine; a deadline bounds the wait. At either
// limit, or when stopped, a planner returns its best plan so far.
//
// Threads: a Stopwatch belongs to one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace tidemark::planner {

struct Limits {
  double seconds = 10;  // of wall clock, from the start of the call
  int64_t nodes = std::numeric_limits<int64_t>::max();  // steps of search, in total
  uint64_t seed = 1;                                    // for free choices
  // Stops the planner soon after any thread sets it. Null: never stopped.
  const std::atomic<bool>* stop = nullptr;
  // If given, the nodes used are added.
  std::atomic<int64_t>* taken = nullptr;

  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
  void count(int64_t more) const {
    if (taken) taken->fetch_add(more, std::memory_order_relaxed);
  }
};

class Stopwatch {
 public:
  explicit Stopwatch(double limit, const std::atomic<bool>* stop = nullptr)
      : start_(Clock::now()), limit_(limit), stop_(stop) {}
  explicit Stopwatch(const Limits& limits) : Stopwatch(limits.seconds, limits.stop) {}
  // A stopwatch from now on, with a share of the remaining time.
  Stopwatch share(double of) const { return Stopwatch(left() * of, stop_); }
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  double left() const { return limit_ - seconds(); }
  // Whether the time is over or the planner was stopped.
  bool expired() const {
    return left() <= 0 || (stop_ && stop_->load(std::memory_order_relaxed));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  double limit_;
  const std::atomic<bool>* stop_;
};

}  // namespace tidemark::planner
