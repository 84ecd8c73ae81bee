// The stream of numbers.h for CPU loops that the compiler should vectorise. It computes many
// blocks side by side, enough that the compiler keeps the loops over them.
#pragma once

#include <cstdint>

#include "ops/kernels/instruction_sets.h"
#include "runtime/core/philox.h"

namespace tidemark::random {

inline constexpr int64_t kSideBySide = 64;
inline constexpr int64_t kWords = 4 * kSideBySide;

// The words of blocks [first, first + kSideBySide), as random_block() gives them, or, with
// another `stream`, those of the Philox counters (block, stream).
TIDEMARK_INLINE void random_words(uint64_t seed, uint64_t first, uint32_t* __restrict words,
                                  uint64_t stream = 0) {
  uint32_t a[kSideBySide], b[kSideBySide], c[kSideBySide], d[kSideBySide];
  for (int64_t i = 0; i < kSideBySide; ++i) {
    const uint64_t block = first + static_cast<uint64_t>(i);
    a[i] = static_cast<uint32_t>(block);
    b[i] = static_cast<uint32_t>(block >> 32);
    c[i] = static_cast<uint32_t>(stream);
    d[i] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
    for (int64_t i = 0; i < kSideBySide; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53} * a[i], p1 = uint64_t{0xCD9E8D57} * c[i];
      a[i] = static_cast<uint32_t>(p1 >> 32) ^ b[i] ^ key0;
      b[i] = static_cast<uint32_t>(p1);
      c[i] = static_cast<uint32_t>(p0 >> 32) ^ d[i] ^ key1;
      d[i] = static_cast<uint32_t>(p0);
    }
  }
  for (int64_t i = 0; i < kSideBySide; ++i) {
    words[4 * i] = a[i];
    words[4 * i + 1] = b[i];
    words[4 * i + 2] = c[i];
    words[4 * i + 3] = d[i];
  }
}

}  // namespace tidemark::random
