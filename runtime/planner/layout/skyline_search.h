// Layouts of many buffers: tries orders of SkylineFit, one a step, and keeps the lowest layout.
//
// A buffer's priority weighs the logarithms of its lifetime and of its size. Steps are, in
// turn: a table of weights; random weights; weights near the best ones, with noise; and the
// best order with noise on some of the buffers that live with one which ends too high. The
// result depends on the seed and the number of steps alone: logarithms and noise are integers.
//
// Threads: an object belongs to one.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/layout/skyline_fit.h"

namespace tidemark::planner {

class SkylineSearch {
 public:
  // In nodes of the exact search, which look at each buffer, as a step does several times.
  static constexpr int64_t kNodesPerStep = 64;
  static constexpr int kTableSteps = 20;

  // REQUIRES: `buffers` outlives the search; some buffer takes space and time.
  SkylineSearch(const std::vector<Buffer>& buffers, uint64_t seed);

  // Tries one more order. Buffers are too high if they end above `goal`.
  void step(Bytes goal);

  // REQUIRES: a step was made.
  Bytes height() const { return height_; }
  const Offsets& offsets() const { return offsets_; }

 private:
  struct Weights {
    int64_t size = 0;  // of kWhole; the lifetime's is the rest
    bool in_sections = false;
  };
  static constexpr int64_t kWhole = 1024;

  int64_t pick(int64_t n);
  int64_t noise(int64_t most);
  void set_priorities(Weights weights, int64_t most_noise);
  void shake(Bytes goal);

  const std::vector<Buffer>& buffers_;
  SkylineFit fit_;
  uint64_t random_;
  int steps_ = 0;
  std::vector<int> order_;  // longest first: ties keep this order
  std::vector<int64_t> log_size_, log_life_, log_sections_;
  std::vector<int64_t> priority_, best_priority_;
  Weights weights_, best_weights_;
  Bytes height_{0};
  Offsets offsets_;
};

}  // namespace tidemark::planner
