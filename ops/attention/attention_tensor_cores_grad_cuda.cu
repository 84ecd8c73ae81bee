// Backward of attention_tensor_cores_cuda.cu. One kernel finds the queries' gradient and one,
// with keys and queries in each other's place, those of keys and values. Both recompute the
// probabilities, and nothing is added atomically: seven products instead of five, and the same
// bits each time.
#include <cmath>

#include "ops/attention/pairs_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/registry/kernels.h"

namespace tidemark::attention {
namespace {

// A row's or column's query: its scores' log_sum in powers of two, and delta. What does not
// exist is 0, and so are q and g: with finite keys and values its pairs contribute nothing.
struct QuerySums {
  float log_sum, delta;
};
struct RowSums {
  const float *log_sum, *delta;

  __device__ QuerySums of(int64_t number, bool there) const {
    if (!there) return {0, 0};
    return {log_sum[number] * kLog2E, delta[number]};
  }
};

// A pair's contributions to the gradients: `kept` is M P, `ds` is P (M dP - delta).
// `multiplier` is M.
struct PairGrad {
  float kept, ds;
};
__device__ PairGrad pair_grad(float score, float dp, bool sees, float multiplier,
                              const QuerySums& query) {
  const float p = fast_exp2(sees ? score - query.log_sum : -INFINITY);  // without a branch
  return {p * multiplier, p * (dp * multiplier - query.delta)};
}

struct SeesAll {
  __device__ bool operator()(int, int) const { return true; }
};

template <class T, int kDepth>
using GradTiles = Tiles<T, kDepth, 2>;

template <class T, int kDepth, bool kStarts>
__global__ void __launch_bounds__(kTileThreads, kQueryGradBlocks<T, kDepth>)
    query_grad_kernel(const __grid_constant__ Call call, Operands<T> from, RowSums saved,
                      bool vectors, T* dq) {
  using OwnTiles = GradTiles<T, kDepth>;
  using Own = typename OwnTiles::Own;
  using Passing = typename OwnTiles::Passing;
  constexpr int kAtOnce = 2;  // parts: a step of rows of bfloat16
  OwnTiles& tiles = block_shared<OwnTiles>();
  __shared__ TileKeys there[2];
  const Extents& extents = call.extents;
  const QueryPlace place(call);
  const Lane lane;
  const float scale = static_cast<float>(call.attrs.scale);
  const float factor = call.dropout.factor;
  Own* const own = tiles.own();
  load_own(own, from.q, from.g, call, place, vectors);
  const WarpRows<Own> q(own[0], lane), g(own[1], lane);
  __syncthreads();
  QuerySums sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane.row(2 * half);
    sums[half] = saved.of(place.number + row, place.first + row < extents.queries);
  }
  FragmentC out[Own::kDepthParts];
  PairBits drawn{};
  const Seen<kStarts> sees(call, place, lane);
  for_each_keys(tiles, there, from, call, place, sees, vectors, lane,
                [&](int first, int part0, const TileKeys& exist, const Passing& keys,
                    const Passing& values) {
                  const PairBits kept = call.dropout.active()
                                            ? draw_once<OwnTiles::kRows / 8>(
                                                  drawn, part0, call, place.number, first, lane)
                                            : kAllPairs;
                  const auto add = [&](const auto& seen) {
#pragma unroll 2
                    for (int part = 0; part < OwnTiles::kRows / 8; part += kAtOnce) {
                      FragmentC scores[kAtOnce], dp[kAtOnce];
                      multiply_rows<kAtOnce>(scores, q, keys, part, lane);
                      multiply_rows<kAtOnce>(dp, g, values, part, lane);
#pragma unroll
                      for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
                        for (int i = 0; i < 4; ++i) {
                          float& score = scores[n].value[i];
                          const float multiplier = kept.at(part0 + part + n, i) ? factor : 0;
                          score = pair_grad(score * (scale * kLog2E), dp[n].value[i],
                                            seen(part0 + part + n, i), multiplier, sums[i / 2])
                                      .ds;
                        }
                      }
                      multiply_columns<kAtOnce>(out, scores, keys, part, lane);
                    }
                  };
                  if (sees.whole(first)) {
                    add(SeesAll());
                  } else {
                    const PairBits bits = sees.bits(exist.all(), first, lane);
                    add([&](int part, int i) { return bits.at(part, i); });
                  }
                });
  const float scales[2] = {scale, scale};
  write_rows(dq + call.whole_q.at(place.b, place.h, place.first), call.whole_q.row, out, scales,
             extents.queries - place.first, extents.depth, lane);
}

// With `starts`: one past the last query that sees any key of a tile, for each tile of keys. A
// warp finds each.
__global__ void __launch_bounds__(kLaunchThreads)
    query_ends_kernel(const __grid_constant__ Call call, int32_t* ends) {
  const int64_t i = thread_index() / 32, queries = call.extents.queries;
  const int64_t tiles = (call.extents.keys + kTileRows - 1) / kTileRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool inside = i < call.extents.batch * tiles;
  int end = 0;
  if (inside) {
    const int64_t next_tile = (i % tiles + 1) * kTileRows;
    for (int64_t query = lane; query < queries; query += 32) {
      if (call.starts.of(i / tiles, query) < next_tile) end = static_cast<int>(query) + 1;
    }
  }
  end = warp_max(end);
  if (inside && lane == 0) ends[i] = end;
}

// With `starts`: which of a tile's queries start at a key or before it.
struct Started {
  uint64_t queries[kTileRows];  // of each key of the block; of key 0 alone if it is all

  // All threads call it; a warp stores what its keys need. Queries that do not exist have
  // started.
  __device__ void find(const Call& call, const Place& place, int first, const Lane& lane) {
    int start[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t query = first + lane.index + 32 * half;
      start[half] = query < call.extents.queries ? call.starts.of(place.b, query) : 0;
    }
    const auto by = [&](int key) {
      const uint64_t later = __ballot_sync(0xFFFFFFFF, start[1] <= key);
      return later << 32 | __ballot_sync(0xFFFFFFFF, start[0] <= key);
    };
    const int first_key = static_cast<int>(place.first);
    const uint64_t early = by(first_key);
    if (lane.warp == 0 && lane.index == 0) queries[0] = early;
    if (early == ~uint64_t{0}) return;
#pragma unroll 1
    for (int row = lane.warp_row; row < lane.warp_row + 16; ++row) {
      const uint64_t started = by(first_key + row);
      if (lane.index == 0) queries[row] = started;
    }
  }
  __device__ bool all() const { return queries[0] == ~uint64_t{0}; }
};

// Which queries see the keys of a thread's rows.
template <bool kStarts>
class SeenBy {
 public:
  // `ends`: of query_ends_kernel.
  __device__ SeenBy(const Call& call, const Place& place, const Lane& lane, const int32_t* ends)
      : end_(static_cast<int>(call.extents.queries)),
        first_key_(static_cast<int>(place.first)),
        causal_(call.attrs.causal != 0),
        all_there_(call.filter.kind == KeyFilter::Kind::kAll &&
                   place.first + kTileRows <= call.extents.keys) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t key = place.first + lane.row(2 * half);
      there_[half] = key < call.extents.keys && call.filter.keeps(call.keys, place.b, key);
    }
    if constexpr (kStarts) {
      const int64_t tiles = (call.extents.keys + kTileRows - 1) / kTileRows;
      end_ = ends[place.b * tiles + place.first / kTileRows];
    }
  }

  // Queries before this one see none of the keys.
  __device__ int begin() const { return causal_ ? first_key_ : 0; }
  // Nor do queries from this one on.
  __device__ int end() const { return end_; }
  // Whether all queries of the tile that begins with `first` see all of the keys.
  __device__ bool whole(int first, const Started& started) const {
    return all_there_ && !(causal_ && first < first_key_ + kTileRows - 1) &&
           (!kStarts || started.all());
  }
  __device__ PairBits bits(int first, const Started& started, const Lane& lane) const {
    PairBits seen{};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int key = first_key_ + lane.row(2 * half);
      uint64_t queries = causal_ ? ~columns_up_to(key - first - 1) : ~uint64_t{0};
      if constexpr (kStarts) {
        if (!started.all()) queries &= started.queries[lane.row(2 * half)];
      }
      seen.row[half] = there_[half] ? columns_of(queries, lane) : 0;
    }
    return seen;
  }

 private:
  int end_;
  const int first_key_;
  const bool causal_, all_there_;
  bool there_[2];
};

template <class T, int kDepth, bool kStarts>
__global__ void __launch_bounds__(kTileThreads, kKeyGradBlocks<T, kDepth>)
    key_grad_kernel(const __grid_constant__ Call call, Operands<T> from, RowSums saved,
                    bool vectors, const int32_t* ends, T* dk, T* dv) {
  using OwnTiles = GradTiles<T, kDepth>;
  using Own = typename OwnTiles::Own;
  using Passing = typename OwnTiles::Passing;
  // Two gradients leave few registers in float32. Three blocks fit for heads of 64 elements if
  // a warp has the scores of one part at once.
  constexpr int kAtOnce = sizeof(T) == 4 && kDepth == 64 ? 1 : 2;
  constexpr int kUnrolled = sizeof(T) == 4 ? 1 : 2;
  OwnTiles& tiles = block_shared<OwnTiles>();
  __shared__ KeptKeys kept[2];
  __shared__ QuerySums sums[2][kTileRows];
  __shared__ Started started[2];  // of kStarts
  const Extents& extents = call.extents;
  const Place place(extents, extents.keys, kTileRows);
  const Lane lane;
  const float scale = static_cast<float>(call.attrs.scale);
  const float factor = call.dropout.factor;
  Own* const own = tiles.own();
  load_own(own, from.k, from.v, call, place, vectors);
  const WarpRows<Own> k(own[0], lane), v(own[1], lane);
  __syncthreads();
  FragmentC dk_out[Own::kDepthParts], dv_out[Own::kDepthParts];
  const SeenBy<kStarts> sees(call, place, lane, ends);
  tiles.for_each(
      sees.begin(), sees.end(),
      [&](Passing* pair, int first) {
        from.q.load(pair[0], call, place, first, vectors);
        from.g.load(pair[1], call, place, first, vectors);
      },
      [&](int first, int turn) {
        const int64_t number = place.head * extents.queries + first;
        const int row = static_cast<int>(threadIdx.x);
        if (row < kTileRows) {
          sums[turn][row] = saved.of(number + row, first + row < extents.queries);
        }
        if constexpr (kStarts) started[turn].find(call, place, first, lane);
        if (call.dropout.active()) {
          kept[turn].template draw<kUnrolled>(call, number, place.first, lane);
        }
      },
      [&](int first, int turn, int part0, const Passing& queries, const Passing& gradients) {
        const auto add = [&](const auto& seen) {
#pragma unroll(kDepth > 64 ? 1 : kUnrolled)
          for (int part = 0; part < OwnTiles::kRows / 8; part += kAtOnce) {
            // Transposed: a row is a key, a column a query.
            FragmentC scores[kAtOnce], dp[kAtOnce];
            multiply_rows<kAtOnce>(scores, k, queries, part, lane);
            multiply_rows<kAtOnce>(dp, v, gradients, part, lane);
#pragma unroll
            for (int n = 0; n < kAtOnce; ++n) {
              const int column = part0 + part + n;  // of 8
              const uint32_t bits =
                  call.dropout.active() ? kept[turn].of(column, lane) : ~uint32_t{0};
#pragma unroll
              for (int i = 0; i < 4; ++i) {
                float &score = scores[n].value[i], &d = dp[n].value[i];
                const float multiplier = bits >> (16 * (i % 2) + 8 * (i / 2)) & 1 ? factor : 0;
                const PairGrad pair = pair_grad(score * (scale * kLog2E), d, seen(column, i),
                                                multiplier, sums[turn][lane.column(column, i)]);
                score = pair.ds;
                d = pair.kept;
              }
            }
            multiply_columns<kAtOnce>(dk_out, scores, queries, part, lane);
            multiply_columns<kAtOnce>(dv_out, dp, gradients, part, lane);
          }
        };
        if (sees.whole(first, started[turn])) {
          add(SeesAll());
        } else {
          const PairBits bits = sees.bits(first, started[turn], lane);
          add([&](int part, int i) { return bits.at(part, i); });
        }
      });
  const int64_t at = call.whole_k.at(place.b, place.h, place.first);
  const float scales[2] = {scale, scale}, ones[2] = {1, 1};
  const int64_t rows = extents.keys - place.first;
  write_rows(dk + at, call.whole_k.row, dk_out, scales, rows, extents.depth, lane);
  write_rows(dv + at, call.whole_k.row, dv_out, ones, rows, extents.depth, lane);
}

}  // namespace

// g, q, k, v, y, log_sum[, keys][, starts] -> dq, dk, dv
PreparedKernel prepare_tensor_cores_grad_cuda(const OpQuery& query) {
  const Call prepared(query, 1, 6);
  const bool vectors = rows_are_aligned(query, 1) && query.inputs[0].offset == 0;
  return visit_float(query.inputs[1].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const Bytes delta_bytes = size_of(DType::kFloat32) * prepared.rows();
    const Bytes ends_bytes =
        prepared.optional.starts ? query_ends_bytes(prepared.extents) : Bytes(0);
    return {align_up(delta_bytes) + ends_bytes, [=](const KernelArgs& args) {
              const Call call = prepared.with(args);
              float* delta = reinterpret_cast<float*>(args.workspace);
              launch_delta(args, call, float_input(args, 0), float_input(args, 4), delta);
              auto* const ends =
                  reinterpret_cast<int32_t*>(args.workspace + align_up(delta_bytes).count());
              if (call.starts.data) {
                const int64_t ends_count = ends_bytes.count() / int64_t{sizeof(int32_t)};
                launch(args, ends_count * 32, query_ends_kernel, call, ends);
              }
              const Operands<T> from(call, args.inputs[0]);
              const RowSums saved{args.in<float>(5), delta};
              with_tile_depth(call.extents.depth, [&]<int kDepth>() {
                with_flag(call.starts.data, [&]<bool kStarts>() {
                  launch_sharing<GradTiles<T, kDepth>>(
                      args, tiles_of(call, call.extents.queries), kTileThreads,
                      query_grad_kernel<T, kDepth, kStarts>, call, from, saved, vectors,
                      args.out<T>(0));
                  launch_sharing<GradTiles<T, kDepth>>(
                      args, tiles_of(call, call.extents.keys), kTileThreads,
                      key_grad_kernel<T, kDepth, kStarts>, call, from, saved, vectors, ends,
                      args.out<T>(1), args.out<T>(2));
                });
              });
            }};
  });
}

}  // namespace tidemark::attention
