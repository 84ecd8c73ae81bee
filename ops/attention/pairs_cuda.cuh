// Which pairs of a query and a key, in one tile each, take part, and which dropout keeps: a bit
// for each of a thread's accumulators.
//
// Accumulator i of part n is in row Lane::row(i) and column Lane::column(n, i). Its bit is 2 n
// + i % 2 of the word for its row, i / 2.
#pragma once

#include <cstdint>

#include "ops/attention/tiles_cuda.cuh"

namespace tidemark::attention {

struct PairBits {
  uint32_t row[2];

  __device__ bool at(int part, int i) const { return row[i / 2] >> (2 * part + i % 2) & 1; }
};

inline constexpr PairBits kAllPairs{{~uint32_t{0}, ~uint32_t{0}}};

// The bits of a row's 64 columns, to those of a thread's 16 columns.
__device__ inline uint32_t columns_of(uint64_t row, const Lane& lane) {
  const uint64_t own = row >> (2 * lane.t);
  uint32_t bits = 0;
#pragma unroll
  for (int n = 0; n < kParts; ++n) bits |= (static_cast<uint32_t>(own >> (8 * n)) & 3) << 2 * n;
  return bits;
}

// Columns up to `last`, which may be negative.
__device__ inline uint64_t columns_up_to(int last) {
  if (last < 0) return 0;
  return last >= 63 ? ~uint64_t{0} : (uint64_t{2} << last) - 1;
}

// Which keys of a tile exist, as a bit each.
struct TileKeys {
  uint32_t half[2];

  // All threads call it; two warps store what they find.
  __device__ void find(const Call& call, int64_t b, int64_t first, const Lane& lane) {
    const int64_t key = first + static_cast<int>(threadIdx.x) % kTileRows;
    const unsigned there = __ballot_sync(
        0xFFFFFFFF, key < call.extents.keys && call.filter.keeps(call.keys, b, key));
    if (lane.warp < 2 && lane.index == 0) half[lane.warp] = there;
  }
  __device__ uint64_t all() const { return uint64_t{half[1]} << 32 | half[0]; }
};

// Which keys a block's queries see. kStarts: whether the call has `starts`. Kernels without are
// compiled on their own, so that they do not pay for it.
template <bool kStarts>
class Seen {
 public:
  __device__ Seen(const Call& call, const Place& place, const Lane& lane)
      : first_query_(static_cast<int>(place.first)),
        keys_(static_cast<int>(call.extents.keys)),
        causal_(call.attrs.causal != 0),
        filtered_(call.filter.kind != KeyFilter::Kind::kAll) {
    if constexpr (kStarts) {
      const auto start_of = [&](int row, int otherwise) {
        const int64_t query = place.first + row;
        return query < call.extents.queries ? call.starts.of(place.b, query) : otherwise;
      };
      const int a = start_of(lane.index, keys_), b = start_of(lane.index + 32, keys_);
      begin_ = -warp_max(-min(min(a, b), keys_)) / kTileRows * kTileRows;
      whole_from_ = warp_max(max(start_of(lane.index, 0), start_of(lane.index + 32, 0)));
      for (int half = 0; half < 2; ++half) start_[half] = start_of(lane.row(2 * half), 0);
    }
  }

  // The first key of the first tile that any of the queries sees.
  __device__ int begin() const { return kStarts ? begin_ : 0; }
  // Keys from here on are seen by none of the queries.
  __device__ int end() const { return causal_ ? min(keys_, first_query_ + kTileRows) : keys_; }
  // Whether all of the queries see all keys of the tile that begins with `first`.
  __device__ bool whole(int first) const {
    const int last = first + kTileRows - 1;
    return !filtered_ && last < keys_ && !(causal_ && last > first_query_) &&
           (!kStarts || first >= whole_from_);
  }
  // `there`: which keys of the tile exist.
  __device__ PairBits bits(uint64_t there, int first, const Lane& lane) const {
    PairBits seen{};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = first_query_ + lane.row(2 * half);
      uint64_t keys = causal_ ? there & columns_up_to(query - first) : there;
      if constexpr (kStarts) keys &= ~columns_up_to(start_[half] - first - 1);
      seen.row[half] = columns_of(keys, lane);
    }
    return seen;
  }

 private:
  const int first_query_, keys_;
  const bool causal_, filtered_;
  int begin_, whole_from_, start_[2];  // of kStarts
};

// Where rows are queries: for each tile of keys that some of them see, use(first, part, there,
// keys, values) with the tile's first key, the first of its parts that are there (see Tiles),
// which of its keys exist (unless all are seen), and the tiles of those parts.
template <class T, int kDepth, int kOwn, bool kStarts, class Use>
__device__ void for_each_keys(Tiles<T, kDepth, kOwn>& tiles, TileKeys (&there)[2],
                              const Operands<T>& from, const Call& call, const Place& place,
                              const Seen<kStarts>& sees, bool vectors, const Lane& lane,
                              const Use& use) {
  using Passing = typename Tiles<T, kDepth, kOwn>::Passing;
  tiles.for_each(
      sees.begin(), sees.end(),
      [&](Passing* pair, int first) {
        from.k.load(pair[0], call, place, first, vectors);
        from.v.load(pair[1], call, place, first, vectors);
      },
      [&](int first, int turn) {
        if (!sees.whole(first)) there[turn].find(call, place.b, first, lane);
      },
      [&](int first, int turn, int part, const Passing& keys, const Passing& values) {
        use(first, part, there[turn], keys, values);
      });
}

// Draws what dropout keeps of a row of queries, and calls keep(part, i, kept) for each of a
// thread's pairs in it; i is 0 or 1. Key 16 w + b is decided by word w of block b (dropout.h),
// so a thread's 16 columns are the words of four blocks. `query`: counts queries over all
// heads. REQUIRES: `first_key` is a multiple of kChunkKeys.
template <class Keep>
__device__ void draw_row(const Call& call, int64_t query, int64_t first_key, const Lane& lane,
                         const Keep& keep) {
  static_assert(kChunkKeys == kTileRows && kChunkBlocks == 16);
  const uint64_t first = call.dropout.block(query, first_key / kChunkKeys) + 2 * lane.t;
#pragma unroll
  for (int b = 0; b < 4; ++b) {  // part b / 2 of a word's two, column b % 2
    const auto words = random_block(call.random_keys, first + b / 2 * 8 + b % 2);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      keep(2 * w + b / 2, b % 2, words[w] >= call.dropout.threshold);
    }
  }
}

// The same for both of a thread's rows, as bits. `query`: number of the tile's first.
__device__ inline PairBits draw_rows(const Call& call, int64_t query, int64_t first_key,
                                     const Lane& lane) {
  PairBits bits{};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    draw_row(call, query + lane.row(2 * half), first_key, lane,
             [&](int part, int i, bool kept) {
               bits.row[half] |= uint32_t{kept} << (2 * part + i);
             });
  }
  return bits;
}

// The same for a tile whose parts pass kCount at a time: drawn with the first of them.
template <int kCount>
__device__ PairBits draw_once(PairBits& drawn, int first_part, const Call& call, int64_t query,
                              int64_t first_key, const Lane& lane) {
  if constexpr (kCount == kParts) return draw_rows(call, query, first_key, lane);
  if (first_part == 0) drawn = draw_rows(call, query, first_key, lane);
  return drawn;
}

// What dropout keeps where rows are keys, and columns queries. A block's four words then belong
// to four warps, so each warp draws for a quarter of the queries.
struct KeptKeys {
  // Bit 16 i + b of [w][p]: key 16 w + b, query 2 p + i.
  uint32_t bits[4][kTileRows / 2];

  // `query`: number of the first, over all heads.
  template <int kUnrolled>
  __device__ void draw(const Call& call, int64_t query, int64_t first_key, const Lane& lane) {
#pragma unroll(kUnrolled)
    for (int p = lane.warp * 8; p < lane.warp * 8 + 8; ++p) {
      const auto words = random_block(
          call.random_keys,
          call.dropout.block(query + 2 * p + lane.index / 16, first_key / kChunkKeys) +
              lane.index % 16);
      uint32_t own = 0;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const unsigned kept = __ballot_sync(0xFFFFFFFF, words[w] >= call.dropout.threshold);
        own = lane.index == w ? kept : own;
      }
      if (lane.index < 4) bits[lane.index][p] = own;
    }
  }
  // Of a thread's accumulators of one part: accumulator i's is bit 16 (i % 2) + 8 (i / 2).
  __device__ uint32_t of(int part, const Lane& lane) const {
    return bits[lane.warp][4 * part + lane.t] >> lane.g;
  }
};

}  // namespace tidemark::attention
