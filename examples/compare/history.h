// Every step of every lane, for reports: gathered while lanes run, bounded.
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
  // Of each lane the first so many steps are kept, and those after that counted.
  static constexpr size_t kStepsKept = 20000;

  struct LaneHistory {
    std::vector<LaneStep> steps;
    int64_t left_out = 0;
  };

  void add(int lane, const LaneStep& step) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    LaneHistory& history = lanes_[lane];
    if (history.steps.size() < kStepsKept) {
      history.steps.push_back(step);
    } else {
      ++history.left_out;
    }
  }
  // By lane, also of those that were removed.
  std::map<int, LaneHistory> lanes() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return lanes_;
  }

 private:
  Mutex mutex_;
  std::map<int, LaneHistory> lanes_ GUARDED_BY(mutex_);
};

}  // namespace tidemark::compare
