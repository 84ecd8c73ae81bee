// Private to residency/: measures the issuing thread's time spent on managing memory.
#pragma once

#include <chrono>

#include "runtime/residency/context.h"

namespace tidemark {

// Counts the host's time during this object's life as spent on memory.
class MemoryTimer {
 public:
  explicit MemoryTimer(ResidencyContext& context)
      : context_(context.options.time_memory && context.timing++ == 0 ? &context : nullptr),
        nested_(context.options.time_memory ? &context.timing : nullptr),
        begin_(context_ ? Clock::now() : Clock::time_point()) {}
  ~MemoryTimer() {
    if (nested_) --*nested_;
    if (!context_) return;
    context_->stats.memory_time += Nanos((Clock::now() - begin_).count());
    ++context_->stats.memory_timings;
  }
  MemoryTimer(const MemoryTimer&) = delete;
  MemoryTimer& operator=(const MemoryTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  ResidencyContext* context_;  // null: not counted, or nested in a timer
  int* nested_;
  Clock::time_point begin_;
};

}  // namespace tidemark
