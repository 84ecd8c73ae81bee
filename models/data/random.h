// Random draws that depend on (seed, stream, index) alone, on top of Philox.
//
// A value type: cheap to make per sample; do not share it between threads.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/core/philox.h"

namespace tidemark {

// Streams under one seed never overlap: the stream is one word of Philox's counter.
enum class RandomStream : uint32_t { kAugment, kOrder, kEpochSeed, kSplit, kPattern, kNoise };

class CounterRandom {
 public:
  CounterRandom(uint64_t seed, RandomStream stream, uint64_t index)
      : key_(philox_key(seed)),
        counter_{0, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                 static_cast<uint32_t>(stream)} {}

  uint32_t bits() {
    if (used_ == 4) {
      words_ = philox4x32(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }
  uint64_t bits64() {
    const uint64_t low = bits();
    return low | static_cast<uint64_t>(bits()) << 32;
  }
  float uniform() { return uniform_float(bits()); }  // [0, 1)
  float uniform(float low, float high) { return low + (high - low) * uniform(); }

  // Uniform in [0, n), without bias. REQUIRES: n > 0.
  uint64_t below(uint64_t n) {
    const uint64_t reject = (0 - n) % n;  // 2^64 mod n
    uint64_t x = bits64();
    while (x < reject) x = bits64();
    return x % n;
  }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> words_{};
  size_t used_ = 4;
};

// Fisher-Yates. Standard libraries differ in std::shuffle; this gives the same order
// everywhere.
template <class T>
void shuffle(std::vector<T>& items, CounterRandom random) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(random.below(i))]);
  }
}

}  // namespace tidemark
