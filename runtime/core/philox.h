// Philox4x32-10, the counter-based random generator of Salmon et al., "Parallel Random Numbers:
// As Easy as 1, 2, 3" (SC 2011), bit for bit as in their Random123 library.
//
// There is no state: the same (counter, key) gives the same four words on any device, thread
// and order of calls. A recomputed operator or a resumed epoch therefore draws the same numbers
// as the first time. By convention the key is a seed, and the counter identifies the draw.
// Different counters under one key are independent streams.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/core/host_device.h"

namespace tidemark {

TIDEMARK_HOST_DEVICE constexpr std::array<uint32_t, 4> philox4x32(
    std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * counter[0];
    const uint64_t p1 = static_cast<uint64_t>(kMultiplier1) * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
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
