// Private to residency/: what managing memory takes of the issuing thread's time.
#pragma once

#include <chrono>

#include "runtime/residency/residency.h"

namespace tidemark {

class Residency::MemoryTimer {
 public:
  explicit MemoryTimer(Residency& residency)
      : residency_(residency.options_.time_memory && residency.timing_++ == 0 ? &residency
                                                                              : nullptr),
        nested_(residency.options_.time_memory ? &residency.timing_ : nullptr),
        begin_(residency_ ? Clock::now() : Clock::time_point()) {}
  ~MemoryTimer() {
    if (nested_) --*nested_;
    if (!residency_) return;
    residency_->stats_.memory_time += Nanos((Clock::now() - begin_).count());
    ++residency_->stats_.memory_timings;
  }
  MemoryTimer(const MemoryTimer&) = delete;
  MemoryTimer& operator=(const MemoryTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  Residency* residency_;  // null: not counted, or within one that is
  int* nested_;
  Clock::time_point begin_;
};

}  // namespace tidemark
