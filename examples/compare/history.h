// Every step of every lane, for reports: collected while lanes run, with a bound on memory.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "examples/compare/snapshot.h"
#include "runtime/core/thread_annotations.h"

namespace tidemark::compare {

class History {
 public:
  // Steps kept per lane (the first ones), and over all lanes together, because lanes can be
  // added and removed without end. Later steps are only counted.
  static constexpr size_t kStepsKept = 20000, kStepsKeptOfAll = 8 * kStepsKept;

  struct LaneHistory {
    std::vector<LaneStep> steps;
    int64_t left_out = 0;
  };

  void add(int lane, const LaneStep& step) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (kept_ == kStepsKeptOfAll && !lanes_.contains(lane)) return;
    LaneHistory& history = lanes_[lane];
    if (history.steps.size() < kStepsKept && kept_ < kStepsKeptOfAll) {
      history.steps.push_back(step);
      ++kept_;
    } else {
      ++history.left_out;
    }
  }
  // By lane, including removed lanes.
  std::map<int, LaneHistory> lanes() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return lanes_;
  }

 private:
  Mutex mutex_;
  std::map<int, LaneHistory> lanes_ GUARDED_BY(mutex_);
  size_t kept_ GUARDED_BY(mutex_) = 0;
};

}  // namespace tidemark::compare
