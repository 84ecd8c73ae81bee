// Which numbers of the session's random stream (ops/random/numbers.h) decide what attention
// drops; the same for all implementations and devices.
//
// A row of probabilities is split into whole chunks of 64 keys, and a chunk uses 16 Philox
// blocks: key j of a chunk takes word j / 16 of block j % 16. Sixteen blocks drawn side by side
// in registers therefore give the numbers of 64 adjacent keys.
#pragma once

#include <cstdint>

#include "ops/random/numbers.h"
#include "runtime/core/host_device.h"

namespace tidemark::attention {

inline constexpr int64_t kChunkKeys = 64, kChunkBlocks = 16;

struct Dropout {
  uint64_t seed = 0;
  uint64_t first = 0;      // index of the first block
  int64_t row_blocks = 0;  // 0: nothing is dropped
  uint32_t threshold = 0;  // numbers at or above are kept
  float factor = 1;        // applied to kept probabilities

  static constexpr int64_t blocks_of_row(int64_t keys) {
    return (keys + kChunkKeys - 1) / kChunkKeys * kChunkBlocks;
  }
  Dropout() = default;
  Dropout(double p, int64_t stream_seed, double first_block, int64_t keys)
      : seed(static_cast<uint64_t>(stream_seed)),
        first(static_cast<uint64_t>(first_block)),
        row_blocks(p > 0 ? blocks_of_row(keys) : 0),
        threshold(static_cast<uint32_t>(p * 0x1p32)),
        factor(static_cast<float>(1 / (1 - p))) {}

  TIDEMARK_HOST_DEVICE bool active() const { return row_blocks > 0; }
  // Index of the block for a chunk's first key. `row` counts queries over all heads and batch
  // entries.
  TIDEMARK_HOST_DEVICE uint64_t block(int64_t row, int64_t chunk) const {
    return first + static_cast<uint64_t>(row * row_blocks + chunk * kChunkBlocks);
  }
  // The factor for one probability: 0, or `factor`.
  TIDEMARK_HOST_DEVICE float multiplier(int64_t row, int64_t key) const {
    const auto words = random_block(
        seed, block(row, key / kChunkKeys) + static_cast<uint64_t>(key % kChunkBlocks));
    return words[static_cast<size_t>(key % kChunkKeys / kChunkBlocks)] >= threshold ? factor
                                                                                    : 0;
  }
};

}  // namespace tidemark::attention
