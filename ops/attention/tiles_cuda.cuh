// Tiles of 64 rows in shared memory, and their fragments for tensor cores (fragments.h).
//
// T: BFloat16, or float, which is rounded to TF32 once it has been loaded. A product of tiles
// proceeds in steps. A product of rows with rows (q k^T) steps along the depth; a product of
// accumulators with columns (P v) steps along the rows. In the latter, each thread uses its
// accumulators as A in place. This permutes the rows of a step; columns_as_b() returns the
// other factor in the same order.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "ops/attention/call_cuda.cuh"
#include "ops/kernels/mma_cuda.cuh"
#include "ops/kernels/shared_cuda.cuh"
#include "runtime/core/host_device.h"

namespace tidemark::attention {

inline constexpr int kTileRows = 64;
inline constexpr int kTileThreads = 128;
inline constexpr int kParts = 8;  // parts of 8 columns each; together a tile's 64 rows
inline constexpr float kLog2E = 1.44269504F, kLn2 = 0.693147181F;

// Queries or keys of a head: kernels count them in 32 bits.
inline constexpr int64_t kMaxRows = std::numeric_limits<int>::max() - kTileRows;

// Blocks that share a multiprocessor: they bound the registers of a thread, and one computes
// while another waits. Where there are 100 KiB of shared memory, no more than two fit.
#if TIDEMARK_DEVICE_CODE == 860 || TIDEMARK_DEVICE_CODE == 890 || TIDEMARK_DEVICE_CODE >= 1200
inline constexpr bool kSmallShared = true;
#else
inline constexpr bool kSmallShared = false;
#endif
template <class T, int kDepth>
inline constexpr int kForwardBlocks = kSmallShared     ? 2
                                      : sizeof(T) == 4 ? 3
                                      : kDepth > 64    ? 2
                                                       : 4;
template <class T, int kDepth>
inline constexpr int kQueryGradBlocks = kSmallShared || (sizeof(T) == 2 && kDepth > 64) ? 2 : 3;
template <class T, int kDepth>
inline constexpr int kKeyGradBlocks = kSmallShared || kDepth > 64 ? 2 : 3;

// The longest rows.
inline constexpr int kMaxDepth = 128;

// Whether every row of q, k and v (the inputs from `at` on) starts at a multiple of 16 bytes.
// Outputs and gradients are gapless.
bool rows_are_aligned(const OpQuery& query, size_t at);

// Calls f.template operator()<flag>().
template <class F>
auto with_flag(bool flag, const F& f) {
  return flag ? f.template operator()<true>() : f.template operator()<false>();
}

// Calls f.template operator()<kDepth>() with the depth of tiles for rows of `depth` elements.
template <class F>
auto with_tile_depth(int64_t depth, const F& f) {
  return depth > 64 ? f.template operator()<kMaxDepth>() : f.template operator()<64>();
}

inline int64_t tiles_of(const Call& call, int64_t along) {
  return (along + kTileRows - 1) / kTileRows * call.extents.all_heads();
}

// The words of a fragment that a thread holds, and the first of its warp's rows in the tile.
struct Lane {
  __device__ Lane()
      : g(static_cast<int>(threadIdx.x) % 32 / 4),
        t(static_cast<int>(threadIdx.x) % 4),
        index(static_cast<int>(threadIdx.x) % 32),
        warp(static_cast<int>(threadIdx.x) / 32),
        warp_row(warp * 16) {}
  int g, t, index, warp, warp_row;

  // Row and column of value i of an accumulator.
  __device__ int row(int i) const { return warp_row + g + i / 2 * 8; }
  __device__ int column(int part, int i) const { return part * 8 + 2 * t + i % 2; }
};

// Two steps, or parts, of B.
struct FragmentsB {
  FragmentB part[2];
};

// kDepth: the largest length of a row in elements. kRowCount: a part of kTileRows.
template <class Element, int kDepth, int kRowCount = kTileRows>
struct Tile {
  using T = Element;
  static constexpr int kRows = kRowCount;
  static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
  static constexpr int kWords = kDepth / kPerWord;
  static constexpr int kDepthSteps = kWords / 8;
  static constexpr int kStepParts = kPerWord;  // accumulators that make up a step of rows
  static constexpr int kDepthParts = kDepth / 8;

  // Four extra words per row put the words that a warp reads at once in 32 different banks.
  alignas(16) uint32_t word[kRows][kWords + 4];

  // Begins to load `rows` rows of `depth` elements, `step` apart, and pads with zeros.
  // `vectors`: the start address and the length of every row are multiples of 16 bytes. The
  // tile is there after finish() and a barrier.
  __device__ void load(const T* from, int64_t step, int64_t rows, int64_t depth, bool vectors) {
    const int first = static_cast<int>(threadIdx.x) / kPieces;
    const int d = static_cast<int>(threadIdx.x) % kPieces * kElements;
    const int left = static_cast<int>(depth) - d;
    const int there = static_cast<int>(min(rows, int64_t{kRows}));
    const T* at = from + first * step + d;
    if (!vectors) return load_elements(at, step, first, d, there, left);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass, at += kPassRows * step) {
      const int row = first + pass * kPassRows;
      copy_async(&word[row][d / kPerWord], at, row >= there || left <= 0);
    }
  }
  // Waits for what this thread has loaded, of any tile, and makes it ready for products.
  __device__ void finish() {
    wait_for_copies();
    if constexpr (sizeof(T) == 4) {
      const int first = static_cast<int>(threadIdx.x) / kPieces;
      const int piece = static_cast<int>(threadIdx.x) % kPieces;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        auto* const own = reinterpret_cast<Piece*>(&word[first + pass * kPassRows][piece * 4]);
        Piece read = *own;
#pragma unroll
        for (uint32_t& w : read.word) w = to_tf32(std::bit_cast<float>(w));
        *own = read;
      }
    }
  }

  // Rows `row` to row + 15 as A, for one step along the depth.
  __device__ FragmentA rows_as_a(int row, int step, const Lane& lane) const {
    return load_matrices(&word[row + lane.index % 16][step * 8 + lane.index / 16 * 4]);
  }
  // Rows `row` to row + 7 as the columns of B, for steps `step` and step + 1.
  __device__ FragmentsB rows_as_b(int row, int step, const Lane& lane) const {
    const FragmentA m =
        load_matrices(&word[row + lane.index % 8][step * 8 + lane.index / 8 * 4]);
    return {{{{m.word[0], m.word[1]}}, {{m.word[2], m.word[3]}}}};
  }
  // Columns 8 `part` to 8 part + 15 as two parts of B, for one step along the rows.
  __device__ FragmentsB columns_as_b(int step, int part, const Lane& lane) const {
    if constexpr (kPerWord == 1) {
      const uint32_t* at = &word[step * 8 + 2 * lane.t][part * 8 + lane.g];
      return {{{{at[0], at[kWords + 4]}}, {{at[8], at[kWords + 12]}}}};
    } else {
      const FragmentA m =
          load_transposed(&word[step * 16 + lane.index % 16][part * 4 + lane.index / 16 * 4]);
      return {{{{m.word[0], m.word[1]}}, {{m.word[2], m.word[3]}}}};
    }
  }

 private:
  struct alignas(16) Piece {
    uint32_t word[4];
  };
  static constexpr int kElements = 4 * kPerWord;  // of 16 bytes
  static constexpr int kPieces = kWords / 4;      // of a row
  static constexpr int kPassRows = kTileThreads / kPieces;
  static constexpr int kPasses = kRows / kPassRows;

  // Rows first, first + kPassRows, ... < there; `left` elements of each are there from `d` on.
  __device__ void load_elements(const T* at, int64_t step, int first, int d, int there,
                                int left) {
    T* const tile = reinterpret_cast<T*>(word);
#pragma unroll 1
    for (int row = first; row < kRows; row += kPassRows, at += kPassRows * step) {
#pragma unroll 1
      for (int e = 0; e < kElements; ++e) {
        tile[row * (kWords + 4) * kPerWord + d + e] = row < there && e < left ? at[e] : T(0.0F);
      }
    }
  }
};

// The queries' tile that this block works on, and the number of its first query over all heads.
struct QueryPlace : Place {
  __device__ explicit QueryPlace(const Call& call)
      : Place(call.extents, call.extents.queries, kTileRows, call.attrs.causal != 0),
        number(head * call.extents.queries + first) {}
  int64_t number;
};

// One of a call's operands, in tiles.
template <class T>
struct Operand {
  const T* data;
  Rows rows;
  int64_t count;  // rows of a head

  template <int kDepth, int kRows>
  __device__ void load(Tile<T, kDepth, kRows>& tile, const Call& call, const Place& place,
                       int64_t first, bool vectors) const {
    tile.load(data + rows.at(place.b, place.h, first), rows.row, count - first,
              call.extents.depth, vectors);
  }
};

template <class T>
struct Operands {
  Operands(const Call& call, const void* gradient)
      : q{static_cast<const T*>(call.q.data), call.q_rows, call.extents.queries},
        k{static_cast<const T*>(call.k.data), call.k_rows, call.extents.keys},
        v{static_cast<const T*>(call.v.data), call.v_rows, call.extents.keys},
        g{static_cast<const T*>(gradient), call.whole_q, call.extents.queries} {}
  Operand<T> q, k, v, g;
};

// Rows of 512 bytes: fragments of them would take more registers than there are.
template <class T, int kDepth>
inline constexpr bool kLongRows = sizeof(T) * kDepth > 256;

// The block's own tiles, where they stay in shared memory.
template <class Tile, int kOwn, bool kStay>
struct OwnTiles {
  Tile tile[kOwn];
};
template <class Tile, int kOwn>
struct OwnTiles<Tile, kOwn, false> {};

// A block's tiles: kOwn of its own rows; and those that pass, two of which are used together,
// such as of keys and values, while the next two are loaded, if there is room for four.
//
// Own rows are read into registers before others pass, in the same place. Only long rows stay
// in shared memory, and the others pass 16 at a time. So a block takes less than 99 KiB, which
// every GPU with tensor cores has.
template <class T, int kDepth, int kOwn>
struct Tiles {
  static constexpr bool kStay = kLongRows<T, kDepth>;
  using Own = Tile<T, kDepth>;
  using Passing = Tile<T, kDepth, kStay ? 16 : kTileRows>;
  static constexpr int kRows = Passing::kRows;
  static constexpr size_t kForFour = kStay ? (96 << 10) - kOwn * sizeof(Own) : 40 << 10;
  static constexpr int kPairs = 4 * sizeof(Passing) <= kForFour ? 2 : 1;

  OwnTiles<Own, kOwn, kStay> staying;
  Passing pair[kPairs][2];

  __device__ Own* own() {
    if constexpr (kStay) {
      return staying.tile;
    } else {
      static_assert(kOwn <= 2);
      return pair[0];
    }
  }

  // For each tile of 64 rows from `first` to `end`: prepare(row, turn), in which a thread may
  // write to shared memory of its own turn, 0 or 1; then use(row, turn, part, a, b) for its
  // parts from `part` on, kRows / 8 of them, in order. `load(pair, row)` begins to load two
  // tiles of kRows rows.
  template <class Load, class Prepare, class Use>
  __device__ void for_each(int first, int end, const Load& load, const Prepare& prepare,
                           const Use& use) {
    if (first < end) load(pair[0], first);
    int at = 0;
    for (int row = first; row < end; row += kRows, at ^= 1) {
      Passing* const now = pair[at % kPairs];
      const int within = kStay ? row % kTileRows : 0;
      const int turn = kStay ? row / kTileRows % 2 : at;
      now[0].finish();
      now[1].finish();
      if (within == 0) prepare(row, turn);
      __syncthreads();
      const bool more = row + kRows < end;
      if (kPairs == 2 && more) load(pair[(at ^ 1) % kPairs], row + kRows);
      use(row - within, turn, within / 8, now[0], now[1]);
      if (kPairs == 1 && more) {
        __syncthreads();
        load(pair[0], row + kRows);
      }
    }
  }
};

// Loads the tiles of two operands at the block's place; all threads may read them then.
template <class T, int kDepth>
__device__ void load_own(Tile<T, kDepth>* own, const Operand<T>& first,
                         const Operand<T>& second, const Call& call, const Place& place,
                         bool vectors) {
  first.load(own[0], call, place, place.first, vectors);
  second.load(own[1], call, place, place.first, vectors);
  own[0].finish();
  own[1].finish();
  __syncthreads();
}

// A warp's 16 rows of a tile, over the whole depth: in registers, but for long rows.
template <class Tile>
class WarpRows {
 public:
  __device__ WarpRows(const Tile& tile, const Lane& lane) : tile_(tile) {
    if constexpr (!kLongRows<typename Tile::T, Tile::kDepthParts * 8>) {
#pragma unroll
      for (int s = 0; s < Tile::kDepthSteps; ++s) {
        step_[s] = tile.rows_as_a(lane.warp_row, s, lane);
      }
    }
  }
  __device__ FragmentA step(int s, const Lane& lane) const {
    if constexpr (kLongRows<typename Tile::T, Tile::kDepthParts * 8>) {
      return tile_.rows_as_a(lane.warp_row, s, lane);
    } else {
      return step_[s];
    }
  }

 private:
  const Tile& tile_;
  FragmentA step_[Tile::kDepthSteps];
};

// parts[n] += the warp's rows times rows 8 (first + n) ... of `tile`, as columns.
template <int kCount, class Own, class Tile>
__device__ void multiply_rows(FragmentC* parts, const WarpRows<Own>& rows, const Tile& tile,
                              int first, const Lane& lane) {
  using T = typename Tile::T;
#pragma unroll
  for (int s = 0; s < Tile::kDepthSteps; s += 2) {
    const FragmentA now = rows.step(s, lane), next = rows.step(s + 1, lane);
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
      const FragmentsB columns = tile.rows_as_b((first + n) * 8, s, lane);
      multiply_add<T>(parts[n], now, columns.part[0]);
      multiply_add<T>(parts[n], next, columns.part[1]);
    }
  }
}

// Converts the accumulators of one step along the rows (Tile::kStepParts of them) to A.
template <class T>
__device__ FragmentA accumulators_as_a(const FragmentC* parts) {
  const auto& c = parts[0].value;
  if constexpr (sizeof(T) == 4) {
    return {{to_tf32(c[0]), to_tf32(c[2]), to_tf32(c[1]), to_tf32(c[3])}};
  } else {
    const auto& d = parts[1].value;
    return {{to_bfloat16_pair(c[0], c[1]), to_bfloat16_pair(c[2], c[3]),
             to_bfloat16_pair(d[0], d[1]), to_bfloat16_pair(d[2], d[3])}};
  }
}

// out += accumulators * rows of `tile`. The accumulators have the columns of parts `first` to
// first + kCount - 1, and the rows are those parts.
template <int kCount, class Tile>
__device__ void multiply_columns(FragmentC* out, const FragmentC* parts, const Tile& tile,
                                 int first, const Lane& lane) {
  using T = typename Tile::T;
  constexpr int kStep = Tile::kStepParts;
#pragma unroll
  for (int p = 0; p < kCount; p += kStep) {
    const FragmentA a = accumulators_as_a<T>(parts + p);
#pragma unroll
    for (int n = 0; n < Tile::kDepthParts; n += 2) {
      const FragmentsB columns = tile.columns_as_b((first + p) / kStep, n, lane);
      multiply_add<T>(out[n], a, columns.part[0]);
      multiply_add<T>(out[n + 1], a, columns.part[1]);
    }
  }
}

// Writes two neighbours in a row, at a multiple of their size.
__device__ inline void write_pair(float* to, float first, float second) {
  struct alignas(8) Pair {
    float first, second;
  };
  *reinterpret_cast<Pair*>(to) = {first, second};
}
__device__ inline void write_pair(BFloat16* to, float first, float second) {
  *reinterpret_cast<uint32_t*>(to) = to_bfloat16_pair(first, second);
}

// Writes the warp's part of a result, times factor[row]; rows are `step` apart.
template <class T, int kDepthParts>
__device__ void write_rows(T* to, int64_t step, const FragmentC (&parts)[kDepthParts],
                           const float* factor, int64_t rows, int64_t depth, const Lane& lane) {
  const bool pairs = depth % 2 == 0;  // then so is `step`, as results are gapless
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane.row(2 * half);
    if (row >= rows) continue;
    T* const at = to + row * step;
#pragma unroll
    for (int n = 0; n < kDepthParts; ++n) {
      const int d = lane.column(n, 0);
      const float first = parts[n].value[2 * half] * factor[half];
      const float second = parts[n].value[2 * half + 1] * factor[half];
      if (pairs) {
        if (d < depth) write_pair(at + d, first, second);
      } else {
        if (d < depth) at[d] = first;
        if (d + 1 < depth) at[d + 1] = second;
      }
    }
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

// The largest value of the warp's lanes.
__device__ inline int warp_max(int value) {
  for (int step = 1; step < 32; step *= 2) {
    value = max(value, __shfl_xor_sync(0xFFFFFFFF, value, step));
  }
  return value;
}

}  // namespace tidemark::attention
