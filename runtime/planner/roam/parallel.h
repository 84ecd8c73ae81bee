// Runs independent pieces of work on several threads.
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

}  // namespace tidemark::planner::roam
