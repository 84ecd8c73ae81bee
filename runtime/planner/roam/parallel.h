// Runs independent pieces of work on several threads, and divides time among them.
//
// Threads: `work` is called from any of them, once per index; an exception is rethrown to the
// caller when all threads have ended.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/planner/limits.h"

namespace tidemark::planner::roam {

template <class Work>
void run_parallel(size_t count, int threads, Work work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto take = [&] {
    // Relaxed: only an index is passed on; results are read after the join.
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!thrown) thrown = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (int k = 1; k < std::min<int64_t>(threads, static_cast<int64_t>(count)); ++k) {
    helpers.emplace_back(take);
  }
  take();
  helpers.clear();
  if (thrown) std::rethrow_exception(thrown);
}

// What each piece may take of the time left, where `threads` pieces run at a time.
class TimeShares {
 public:
  // divide off: all of it.
  TimeShares(const Stopwatch& watch, size_t pieces, int threads, bool divide)
      : watch_(watch), threads_(threads), divide_(divide), pieces_(pieces) {}

  // Seconds. Call once as each piece begins, on any thread.
  double next() {
    const double left = std::max(0.0, watch_.left());
    // Relaxed: the number alone is passed on.
    const size_t pieces = pieces_.fetch_sub(1, std::memory_order_relaxed);
    if (!divide_ || pieces <= static_cast<size_t>(threads_)) return left;
    return left * threads_ / static_cast<double>(pieces);
  }

 private:
  const Stopwatch watch_;
  const int threads_;
  const bool divide_;
  std::atomic<size_t> pieces_;  // that have not begun
};

}  // namespace tidemark::planner::roam
