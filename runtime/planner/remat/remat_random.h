// Random choices that are the same on every machine: the distributions of <random> are not.
//
// Threads: a Random belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::planner::remat {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  // SplitMix64 (Steele, Lea and Flood, 2014).
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // In [0, count). REQUIRES: count > 0.
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // in [0, 1)
  bool chance(double probability) { return unit() < probability; }

 private:
  uint64_t state_;
};

}  // namespace tidemark::planner::remat
