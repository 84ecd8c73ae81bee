// The session's stream of random numbers, shared by all devices.
//
// Number k under a seed is word k % 4 of Philox block k / 4, on every device. An operator
// stores where in the stream it starts, so recomputing it draws the same numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "runtime/core/host_device.h"
#include "runtime/core/philox.h"

namespace tidemark {

TIDEMARK_HOST_DEVICE inline std::array<uint32_t, 4> random_block(const PhiloxKeys& keys,
                                                                 uint64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                    keys);
}
TIDEMARK_HOST_DEVICE inline std::array<uint32_t, 4> random_block(uint64_t seed,
                                                                 uint64_t block) {
  return random_block(PhiloxKeys(philox_key(seed)), block);
}

// Calls f(i, bits) for i in [begin, end), with the stream's number start + i.
template <class F>
TIDEMARK_HOST_DEVICE void for_random_bits(uint64_t seed, uint64_t start, int64_t begin,
                                          int64_t end, F f) {
  int64_t i = begin;
  while (i < end) {
    const uint64_t number = start + static_cast<uint64_t>(i);
    const std::array<uint32_t, 4> words = random_block(seed, number / 4);
    // Unrolled, so that on a GPU the words stay in registers.
    for (uint64_t word = 0; word < 4; ++word) {
      if (word >= number % 4 && i < end) f(i++, words[word]);
    }
  }
}

// Two independent standard normal values from two numbers (Box and Muller, 1958).
TIDEMARK_HOST_DEVICE inline std::array<float, 2> normal_pair(uint32_t a, uint32_t b) {
  // uniform_float(a) + 2^-24 is in (0, 1], as the logarithm needs.
  const float radius = std::sqrt(-2 * std::log(uniform_float(a) + 0x1p-24f));
  const float angle = 6.2831853f * uniform_float(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// For for_random_bits(): each two numbers give two values of y[0, n); the last pair may be
// half.
struct NormalPairs {
  int64_t n;
  float mean, deviation;
  float* y;
  uint32_t first = 0;

  TIDEMARK_HOST_DEVICE void operator()(int64_t i, uint32_t bits) {
    if (i % 2 == 0) {
      first = bits;
      return;
    }
    const auto pair = normal_pair(first, bits);
    y[i - 1] = mean + deviation * pair[0];
    if (i < n) y[i] = mean + deviation * pair[1];
  }
};

}  // namespace tidemark
