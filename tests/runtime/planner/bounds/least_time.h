// The least time of a tiny step of which nothing is copied, by trying everything.
//
// Dijkstra's search over what has run and what is resident. Bytes lie anywhere.
//
// Threads: belongs to one.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "tests/runtime/planner/bounds/tiny_step.h"

namespace tidemark::testing::tiny {

class LeastTime {
 public:
  // REQUIRES: fewer than 32 operators and storages together; uploads take no time.
  explicit LeastTime(TinyStep step) : step_(std::move(step)) {}

  // None: nothing fits.
  std::optional<Nanos> within(Bytes space) {
    space_ = space.count();
    least_.assign(size_t{1} << (step_.ops + step_.storages), kNever);
    queue_ = {};
    if (step_.bytes(step_.at_start) <= space_) offer(0, 0, step_.at_start);
    while (!queue_.empty()) {
      const auto [time, state] = queue_.top();
      queue_.pop();
      if (time > least_[state]) continue;
      const Set done = state >> step_.storages, here = state & (just(step_.storages) - 1);
      if (done == step_.all_ops() && (step_.at_end & ~here) == 0) return Nanos(time);
      for (uint32_t s = 0; s < step_.storages; ++s) {
        const bool may_leave = step_.may_come_again(done, s) || step_.is_free(done, s);
        if (has(here, s) && may_leave) offer(time, done, here & ~just(s));
      }
      for (uint32_t k = 0; k < step_.ops; ++k) {
        if (step_.may_run(done, here, k)) run(time, done, here, k);
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void run(int64_t time, Set done, Set here, uint32_t k) {
    const int64_t then = time + step_.run_of(done, k).cost.count();
    const int64_t needed = step_.bytes(here) + step_.taken_by(done, k);
    const Set after = step_.here_after(done, here, k);
    if (needed <= space_) offer(then, done | just(k), after);
    const Set may_overwrite = step_.may_overwrite(done, k);
    for (uint32_t s = 0; s < step_.storages; ++s) {
      if (!has(may_overwrite, s) || needed - step_.size(s) > space_) continue;
      offer(then, done | just(k), after & ~just(s));
    }
  }

  void offer(int64_t time, Set done, Set here) {
    const Set state = done << step_.storages | here;
    if (time >= least_[state] || !step_.is_obtainable(done, here)) return;
    least_[state] = time;
    queue_.emplace(time, state);
  }

  using Entry = std::pair<int64_t, Set>;
  const TinyStep step_;
  int64_t space_ = 0;
  std::vector<int64_t> least_;  // by state
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace tidemark::testing::tiny
