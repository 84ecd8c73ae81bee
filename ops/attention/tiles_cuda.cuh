// Tiles of 64 rows in shared memory, and their fragments for tensor cores (fragments.h).
//
// T: BFloat16, or float, which is rounded to TF32 while loading. A product of tiles proceeds in
// steps. A product of rows with rows (q k^T) steps along the depth; a product of accumulators
// with columns (P v) steps along the rows. In the latter, each thread uses its accumulators as
// A in place. This permutes the rows of a step; columns_as_b() returns the other factor in the
// same order.
#pragma once

#include <cstdint>

#include "ops/attention/call_cuda.cuh"
#include "ops/kernels/mma_cuda.cuh"

namespace tidemark::attention {

inline constexpr int kTileRows = 64;
inline constexpr int kTileDepth = 64;  // largest row length in elements
inline constexpr int kTileThreads = 128;
inline constexpr int kParts = 8;  // parts of 8 columns each; together a tile's 64

// The words of a fragment that a thread holds, and the first of its warp's rows in the tile.
struct Lane {
  __device__ Lane()
      : g(static_cast<int>(threadIdx.x) % 32 / 4),
        t(static_cast<int>(threadIdx.x) % 4),
        warp_row(static_cast<int>(threadIdx.x) / 32 * 16) {}
  int g, t, warp_row;

  // Row and column of value i of an accumulator.
  __device__ int row(int i) const { return warp_row + g + i / 2 * 8; }
  __device__ int column(int part, int i) const { return part * 8 + 2 * t + i % 2; }
};

// Packs two numbers into a word, the first in its low half.
__device__ inline uint32_t word_of(BFloat16 first, BFloat16 second) {
  return uint32_t{first.bits} | uint32_t{second.bits} << 16;
}

// The elements that a thread loads at once.
template <class T>
struct alignas(16) Piece {
  T element[16 / sizeof(T)];
};
__device__ inline Piece<uint32_t> words_of(const Piece<float>& from) {
  const float* e = from.element;
  return {{to_tf32(e[0]), to_tf32(e[1]), to_tf32(e[2]), to_tf32(e[3])}};
}
__device__ inline Piece<uint32_t> words_of(const Piece<BFloat16>& from) {
  const BFloat16* e = from.element;
  return {{word_of(e[0], e[1]), word_of(e[2], e[3]), word_of(e[4], e[5]), word_of(e[6], e[7])}};
}

template <class T>
struct Tile {
  static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
  static constexpr int kWords = kTileDepth / kPerWord;
  static constexpr int kDepthSteps = kWords / 8;
  static constexpr int kStepParts = kPerWord;  // accumulators that make up a step of rows
  static constexpr int kRowSteps = kParts / kStepParts;

  // Four extra words per row put the words that a warp reads at once in 32 different banks.
  alignas(16) uint32_t word[kTileRows][kWords + 4];

  // Loads `rows` rows of `depth` elements, `step` apart, and pads with zeros. `vectors`: the
  // start address and the length of every row are multiples of 16 bytes.
  __device__ void load(const T* from, int64_t step, int64_t rows, int64_t depth, bool vectors) {
    constexpr int kElements = 4 * kPerWord;  // of 16 bytes
    constexpr int kPieces = kWords / 4;
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kPieces; i += kTileThreads) {
      const int row = i / kPieces, piece = i % kPieces;
      Piece<T> read{};
      if (row < rows) {
        const T* at = from + row * step + piece * kElements;
        const int64_t left = depth - piece * kElements;
        if (vectors) {
          if (left > 0) read = *reinterpret_cast<const Piece<T>*>(at);
        } else {
#pragma unroll
          for (int e = 0; e < kElements; ++e) {
            if (e < left) read.element[e] = at[e];
          }
        }
      }
      *reinterpret_cast<Piece<uint32_t>*>(&word[row][piece * 4]) = words_of(read);
    }
  }

  // Rows `row` to row + 15 as A, for one step along the depth.
  __device__ FragmentA rows_as_a(int row, int step, const Lane& lane) const {
    const uint32_t* at = &word[row + lane.g][step * 8 + lane.t];
    const uint32_t* below = at + 8 * (kWords + 4);
    return {{at[0], below[0], at[4], below[4]}};
  }
  // Rows `row` to row + 7 as the columns of B.
  __device__ FragmentB rows_as_b(int row, int step, const Lane& lane) const {
    const uint32_t* at = &word[row + lane.g][step * 8 + lane.t];
    return {{at[0], at[4]}};
  }
  // Columns 8 `part` to 8 part + 7 as B, for one step along the rows.
  __device__ FragmentB columns_as_b(int step, int part, const Lane& lane) const {
    if constexpr (kPerWord == 1) {
      const uint32_t* at = &word[step * 8 + 2 * lane.t][part * 8 + lane.g];
      return {{at[0], at[kWords + 4]}};
    } else {
      return load_transposed(&word[step * 16 + threadIdx.x % 16][part * 4]);
    }
  }
};

// Converts the accumulators of one step along the rows (Tile::kStepParts of them) to A.
template <class T>
__device__ FragmentA accumulators_as_a(const FragmentC* parts) {
  const auto& c = parts[0].value;
  if constexpr (sizeof(T) == 4) {
    return {{to_tf32(c[0]), to_tf32(c[2]), to_tf32(c[1]), to_tf32(c[3])}};
  } else {
    const auto& d = parts[1].value;
    return {
        {word_of(c[0], c[1]), word_of(c[2], c[3]), word_of(d[0], d[1]), word_of(d[2], d[3])}};
  }
}

// Combines the values of lanes 4g to 4g + 3, which hold the columns of one row; all four lanes
// get the result.
template <class Op>
__device__ float quad_reduce(float value, const Op& op) {
  constexpr unsigned kAllLanes = 0xFFFFFFFF;
  value = op(value, __shfl_xor_sync(kAllLanes, value, 1));
  return op(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// The pairs of a query and a key, in one tile each, that dropout keeps.
struct Kept {
  // Bit w of [query][b] is set if key 16 w + b is kept; random blocks decide this (dropout.h).
  uint8_t bits[kTileRows][kChunkBlocks];

  // REQUIRES: `first_key` is a multiple of kChunkKeys. `row`: index of the first query.
  __device__ void draw(const Dropout& dropout, int64_t row, int64_t first_key) {
    static_assert(kChunkKeys == kTileRows);
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kChunkBlocks;
         i += kTileThreads) {
      const int query = i / kChunkBlocks, block = i % kChunkBlocks;
      const auto words = random_block(
          dropout.seed, dropout.block(row + query, first_key / kChunkKeys) + block);
      uint32_t kept = 0;
#pragma unroll
      for (int w = 0; w < 4; ++w) kept |= uint32_t{words[w] >= dropout.threshold} << w;
      bits[query][block] = static_cast<uint8_t>(kept);
    }
  }
  __device__ float multiplier(const Dropout& dropout, int query, int key) const {
    if (!dropout.active()) return 1;
    const int bit = key / static_cast<int>(kChunkBlocks);
    return bits[query][key % kChunkBlocks] >> bit & 1 ? dropout.factor : 0;
  }
};

}  // namespace tidemark::attention
