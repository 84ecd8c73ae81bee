// How long a planner may think.
//
// A node budget gives the same plan on every machine; a deadline bounds the wait. A planner
// that reaches either returns the best that it has.
//
// Threads: a Stopwatch belongs to one.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace tidemark::planner {

struct Limits {
  double seconds = 10;  // of wall clock, from the start of the call
  int64_t nodes = std::numeric_limits<int64_t>::max();  // steps of search, over all of them
  uint64_t seed = 1;                                    // of the choices that are free
};

class Stopwatch {
 public:
  explicit Stopwatch(double limit) : start_(Clock::now()), limit_(limit) {}
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  double left() const { return limit_ - seconds(); }
  bool expired() const { return left() <= 0; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  double limit_;
};

}  // namespace tidemark::planner
