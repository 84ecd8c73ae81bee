// Philox4x32-10, the counter-based random generator of Salmon et al., "Parallel Random Numbers:
// As Easy as 1, 2, 3" (SC 2011), bit for bit as in their Random123 library.
//
// There is no state: the same (counter, key) gives the same four words on any device, thread
// and order of calls. A recomputed operator or a resumed epoch therefore draws the same numbers
// as the first time. By convention the key is a seed, and the counter identifies the draw.
// Different counters under one key are independent streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/core/host_device.h"

namespace tidemark {

// The rounds' keys, to be prepared where many blocks are drawn under one key.
struct PhiloxKeys {
  static constexpr size_t kRounds = 10;

  TIDEMARK_HOST_DEVICE constexpr explicit PhiloxKeys(std::array<uint32_t, 2> key) : round{} {
    for (size_t i = 0; i < kRounds; ++i) {
      round[i] = key;
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
  }
  std::array<std::array<uint32_t, 2>, kRounds> round;
};

TIDEMARK_HOST_DEVICE constexpr std::array<uint32_t, 4> philox4x32(
    std::array<uint32_t, 4> counter, const PhiloxKeys& keys) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  for (const std::array<uint32_t, 2>& key : keys.round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * counter[0];
    const uint64_t p1 = static_cast<uint64_t>(kMultiplier1) * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(p0)};
  }
  return counter;
}

TIDEMARK_HOST_DEVICE constexpr std::array<uint32_t, 4> philox4x32(
    std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  return philox4x32(counter, PhiloxKeys(key));
}

// The two words of a 64-bit seed, low word first.
TIDEMARK_HOST_DEVICE constexpr std::array<uint32_t, 2> philox_key(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// 32 random bits to a multiple of 2^-24 in [0, 1): exact in float, the same everywhere.
TIDEMARK_HOST_DEVICE constexpr float uniform_float(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

}  // namespace tidemark
