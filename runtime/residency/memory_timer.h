// Private to residency/: what managing memory takes of the issuing thread's time.
#pragma once

#include <chrono>

#include "runtime/residency/context.h"

namespace tidemark {

// Counts the host's time from here to its end as spent on memory.
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
  ResidencyContext* context_;  // null: not counted, or within one that is
  int* nested_;
  Clock::time_point begin_;
};

}  // namespace tidemark
