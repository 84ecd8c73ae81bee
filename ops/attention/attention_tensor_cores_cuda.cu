// Memory-efficient attention on tensor cores, in TF32 or bfloat16, with sums in float32, after
// FlashAttention-2 (Dao, 2023). A block handles a tile of 64 queries. Each of its four warps
// holds 16 of them, with their part of the scores and of the result, in registers; tiles of
// keys and values pass through shared memory. Backward has one kernel for the queries' gradient
// and one, with keys and queries in each other's place, for the gradients of keys and values.
// Both recompute the probabilities, and nothing is added atomically.
#include <cmath>

#include "ops/attention/tiles_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/registry/kernels.h"

namespace tidemark::attention {
namespace {

constexpr float kLog2E = 1.44269504F, kLn2 = 0.693147181F;

// One of a call's operands, in tiles.
template <class T>
struct Operand {
  const T* data;
  Rows rows;
  int64_t count;  // rows of a head

  __device__ void load(Tile<T>& tile, const Call& call, const Place& place, int64_t first,
                       bool vectors) const {
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

// A warp's 16 rows of a tile, over the whole depth.
template <class T>
struct WarpRows {
  __device__ WarpRows(const Tile<T>& tile, const Lane& lane) {
#pragma unroll
    for (int s = 0; s < Tile<T>::kDepthSteps; ++s) {
      step[s] = tile.rows_as_a(lane.warp_row, s, lane);
    }
  }
  FragmentA step[Tile<T>::kDepthSteps];
};

// parts[n] += the warp's rows times rows 8 (first + n) ... of `tile`, as columns.
template <int kCount, class T>
__device__ void multiply_rows(FragmentC* parts, const WarpRows<T>& rows, const Tile<T>& tile,
                              int first, const Lane& lane) {
#pragma unroll
  for (int s = 0; s < Tile<T>::kDepthSteps; ++s) {
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
      multiply_add<T>(parts[n], rows.step[s], tile.rows_as_b((first + n) * 8, s, lane));
    }
  }
}

// out += accumulators * rows of `tile`. The accumulators have the columns of parts `first` to
// first + kCount - 1, and the rows are those parts.
template <int kCount, class T>
__device__ void multiply_columns(FragmentC* out, const FragmentC* parts, const Tile<T>& tile,
                                 int first, const Lane& lane) {
  constexpr int kStep = Tile<T>::kStepParts;
#pragma unroll
  for (int p = 0; p < kCount; p += kStep) {
    const FragmentA a = accumulators_as_a<T>(parts + p);
#pragma unroll
    for (int n = 0; n < kParts; ++n) {
      multiply_add<T>(out[n], a, tile.columns_as_b((first + p) / kStep, n, lane));
    }
  }
}

// Writes two elements of each row of the warp's part of a result, times factor[row].
template <class T>
__device__ void write_rows(T* to, int64_t step, const FragmentC* parts, const float* factor,
                           int64_t rows, int64_t depth, const Lane& lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane.row(2 * half);
    if (row >= rows) continue;
#pragma unroll
    for (int n = 0; n < kParts; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        const int d = lane.column(n, i);
        if (d < depth) to[row * step + d] = parts[n].value[i] * factor[half];
      }
    }
  }
}

// Finds which keys of a tile exist.
__device__ void find_keys(bool* there, const Call& call, int64_t b, int64_t first) {
  if (threadIdx.x >= kTileRows) return;
  const int64_t key = first + threadIdx.x;
  there[threadIdx.x] = key < call.extents.keys && call.filter.keeps(call.keys, b, key);
}

template <class T>
__global__ void __launch_bounds__(kTileThreads)
    forward_kernel(const __grid_constant__ Call call, Operands<T> from, bool vectors, T* y,
                   float* log_sum) {
  __shared__ Tile<T> keys, values;
  __shared__ Kept kept;
  __shared__ bool there[kTileRows];
  const Extents& extents = call.extents;
  const Place place(extents, extents.queries, kTileRows);
  const Lane lane;
  const int64_t number = place.head * extents.queries + place.first;
  const bool causal = call.attrs.causal != 0;
  const float scale = static_cast<float>(call.attrs.scale) * kLog2E;
  from.q.load(keys, call, place, place.first, vectors);
  __syncthreads();
  const WarpRows<T> q(keys, lane);
  FragmentC out[kParts];
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};  // scores in powers of two
  const int64_t end = causal ? min(extents.keys, place.first + kTileRows) : extents.keys;
  for (int64_t first = 0; first < end; first += kTileRows) {
    __syncthreads();
    from.k.load(keys, call, place, first, vectors);
    from.v.load(values, call, place, first, vectors);
    find_keys(there, call, place.b, first);
    if (call.dropout.active()) kept.draw(call.dropout, number, first);
    __syncthreads();
    FragmentC scores[kParts];
    multiply_rows<kParts>(scores, q, keys, 0, lane);
    float shift[2] = {largest[0], largest[1]}, shrink[2];
#pragma unroll
    for (int n = 0; n < kParts; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = lane.column(n, i);
        const bool sees = there[key] && !(causal && first + key > place.first + lane.row(i));
        float& score = scores[n].value[i];
        score = sees ? score * scale : -INFINITY;
        shift[i / 2] = score > shift[i / 2] ? score : shift[i / 2];
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      shift[half] = quad_reduce(shift[half], [](float a, float b) { return b > a ? b : a; });
      const float before = largest[half];
      largest[half] = shift[half];
      if (shift[half] == -INFINITY) shift[half] = 0;  // no key yet: 2^(-infinity) is 0
      shrink[half] = exp2f(before - shift[half]);
      sum[half] *= shrink[half];
    }
#pragma unroll
    for (int n = 0; n < kParts; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = exp2f(scores[n].value[i] - shift[i / 2]);
        sum[i / 2] += p;
        scores[n].value[i] = p * kept.multiplier(call.dropout, lane.row(i), lane.column(n, i));
        out[n].value[i] *= shrink[i / 2];
      }
    }
    multiply_columns<kParts>(out, scores, values, 0, lane);
  }
  float share[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] = quad_reduce(sum[half], [](float a, float b) { return a + b; });
    share[half] = largest[half] == -INFINITY ? 0 : 1 / sum[half];
    const int row = lane.row(2 * half);
    if (lane.t == 0 && place.first + row < extents.queries) {
      log_sum[number + row] =
          largest[half] == -INFINITY ? INFINITY : (largest[half] + log2f(sum[half])) * kLn2;
    }
  }
  write_rows(y + call.whole_q.at(place.b, place.h, place.first), call.whole_q.row, out, share,
             extents.queries - place.first, extents.depth, lane);
}

// The sums of a query that backward needs. For a query that does not exist, values that make
// its pairs contribute nothing.
struct QuerySums {
  float log_sum, delta;  // log_sum in powers of two
};

struct RowSums {
  const float *log_sum, *delta;

  __device__ QuerySums of(int64_t number, bool there) const {
    if (!there) return {INFINITY, 0};
    return {log_sum[number] * kLog2E, delta[number]};
  }
};

// A pair's contributions to the gradients: `kept` is M P, `ds` is P (M dP - delta).
// `multiplier` is M.
struct PairGrad {
  float kept, ds;
};
__device__ PairGrad pair_grad(bool sees, float score, float dp, float multiplier,
                              const QuerySums& query) {
  const float p = sees ? exp2f(score - query.log_sum) : 0;
  return {p * multiplier, p * (dp * multiplier - query.delta)};
}

template <class T>
__global__ void __launch_bounds__(kTileThreads)
    query_grad_kernel(const __grid_constant__ Call call, Operands<T> from, RowSums saved,
                      bool vectors, T* dq) {
  constexpr int kAtOnce = 2;  // parts: a step of rows of bfloat16
  __shared__ Tile<T> keys, values;
  __shared__ Kept kept;
  __shared__ bool there[kTileRows];
  const Extents& extents = call.extents;
  const Place place(extents, extents.queries, kTileRows);
  const Lane lane;
  const int64_t number = place.head * extents.queries + place.first;
  const bool causal = call.attrs.causal != 0;
  const float scale = static_cast<float>(call.attrs.scale);
  from.q.load(keys, call, place, place.first, vectors);
  from.g.load(values, call, place, place.first, vectors);
  __syncthreads();
  const WarpRows<T> q(keys, lane), g(values, lane);
  QuerySums sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane.row(2 * half);
    sums[half] = saved.of(number + row, place.first + row < extents.queries);
  }
  FragmentC out[kParts];
  const int64_t end = causal ? min(extents.keys, place.first + kTileRows) : extents.keys;
  for (int64_t first = 0; first < end; first += kTileRows) {
    __syncthreads();
    from.k.load(keys, call, place, first, vectors);
    from.v.load(values, call, place, first, vectors);
    find_keys(there, call, place.b, first);
    if (call.dropout.active()) kept.draw(call.dropout, number, first);
    __syncthreads();
#pragma unroll 1
    for (int part = 0; part < kParts; part += kAtOnce) {
      FragmentC scores[kAtOnce], dp[kAtOnce];
      multiply_rows<kAtOnce>(scores, q, keys, part, lane);
      multiply_rows<kAtOnce>(dp, g, values, part, lane);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = lane.column(part + n, i), row = lane.row(i);
          const bool sees = there[key] && !(causal && first + key > place.first + row);
          float& score = scores[n].value[i];
          score = pair_grad(sees, score * (scale * kLog2E), dp[n].value[i],
                            kept.multiplier(call.dropout, row, key), sums[i / 2])
                      .ds;
        }
      }
      multiply_columns<kAtOnce>(out, scores, keys, part, lane);
    }
  }
  const float factor[2] = {scale, scale};
  write_rows(dq + call.whole_q.at(place.b, place.h, place.first), call.whole_q.row, out, factor,
             extents.queries - place.first, extents.depth, lane);
}

template <class T>
__global__ void __launch_bounds__(kTileThreads)
    key_grad_kernel(const __grid_constant__ Call call, Operands<T> from, RowSums saved,
                    bool vectors, T* dk, T* dv) {
  constexpr int kAtOnce = 2;
  __shared__ Tile<T> queries, gradients;
  __shared__ Kept kept;
  __shared__ bool there[kTileRows];
  __shared__ QuerySums sums[kTileRows];
  const Extents& extents = call.extents;
  const Place place(extents, extents.keys, kTileRows);
  const Lane lane;
  const bool causal = call.attrs.causal != 0;
  const float scale = static_cast<float>(call.attrs.scale);
  from.k.load(queries, call, place, place.first, vectors);
  from.v.load(gradients, call, place, place.first, vectors);
  find_keys(there, call, place.b, place.first);
  __syncthreads();
  const WarpRows<T> k(queries, lane), v(gradients, lane);
  FragmentC dk_out[kParts], dv_out[kParts];
  // Queries before the tile's first key do not see that key.
  for (int64_t first = causal ? place.first : 0; first < extents.queries; first += kTileRows) {
    const int64_t number = place.head * extents.queries + first;
    __syncthreads();
    from.q.load(queries, call, place, first, vectors);
    from.g.load(gradients, call, place, first, vectors);
    if (threadIdx.x < kTileRows) {
      sums[threadIdx.x] = saved.of(number + threadIdx.x, first + threadIdx.x < extents.queries);
    }
    if (call.dropout.active()) kept.draw(call.dropout, number, place.first);
    __syncthreads();
#pragma unroll 1
    for (int part = 0; part < kParts; part += kAtOnce) {
      // Transposed: a row is a key, a column a query.
      FragmentC scores[kAtOnce], dp[kAtOnce];
      multiply_rows<kAtOnce>(scores, k, queries, part, lane);
      multiply_rows<kAtOnce>(dp, v, gradients, part, lane);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int query = lane.column(part + n, i), row = lane.row(i);
          const bool sees = there[row] && !(causal && place.first + row > first + query);
          float &score = scores[n].value[i], &d = dp[n].value[i];
          const PairGrad pair =
              pair_grad(sees, score * (scale * kLog2E), d,
                        kept.multiplier(call.dropout, query, row), sums[query]);
          score = pair.ds;
          d = pair.kept;
        }
      }
      multiply_columns<kAtOnce>(dk_out, scores, queries, part, lane);
      multiply_columns<kAtOnce>(dv_out, dp, gradients, part, lane);
    }
  }
  const int64_t at = call.whole_k.at(place.b, place.h, place.first);
  const float factor[2] = {scale, scale}, one[2] = {1, 1};
  const int64_t rows = extents.keys - place.first;
  write_rows(dk + at, call.whole_k.row, dk_out, factor, rows, extents.depth, lane);
  write_rows(dv + at, call.whole_k.row, dv_out, one, rows, extents.depth, lane);
}

// Whether every row of q, k and v (the inputs from `at` on) starts at a multiple of 16 bytes.
// Outputs and gradients are gapless.
bool rows_are_aligned(const OpQuery& query, size_t at) {
  const int64_t vector = 16 / size_of(query.inputs[at].dtype).count();
  for (size_t i = at; i < at + 3; ++i) {
    const TensorMeta& x = query.inputs[i];
    for (const int64_t elements :
         {x.offset, x.strides[0], x.strides[1], x.strides[2], x.shape[3]}) {
      if (elements % vector != 0) return false;
    }
  }
  return true;
}

int64_t blocks(const Call& call, int64_t along) {
  return (along + kTileRows - 1) / kTileRows * call.extents.all_heads();
}

}  // namespace

bool tensor_cores_take(const OpQuery& query, size_t at) {
  const TensorMeta& q = query.inputs[at];
  return (q.dtype == DType::kBFloat16 || query.tf32) && q.shape[3] <= kTileDepth &&
         has_tensor_cores();
}

PreparedKernel prepare_tensor_cores_cuda(const OpQuery& query) {
  const Call prepared(query, 0, 3);
  const bool vectors = rows_are_aligned(query, 0);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [prepared, vectors](const KernelArgs& args) {
              const Call call = prepared.with(args);
              launch_blocks(args, blocks(call, call.extents.queries), kTileThreads,
                            forward_kernel<T>, call, Operands<T>(call, nullptr), vectors,
                            args.out<T>(0), args.out<float>(1));
            }};
  });
}

// g, q, k, v, y, log_sum[, keys] -> dq, dk, dv
PreparedKernel prepare_tensor_cores_grad_cuda(const OpQuery& query) {
  const Call prepared(query, 1, 6);
  const bool vectors = rows_are_aligned(query, 1) && query.inputs[0].offset == 0;
  return visit_float(query.inputs[1].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {size_of(DType::kFloat32) * prepared.rows(),
            [prepared, vectors](const KernelArgs& args) {
              const Call call = prepared.with(args);
              float* delta = reinterpret_cast<float*>(args.workspace);
              launch_delta(args, call, float_input(args, 0), float_input(args, 4), delta);
              const Operands<T> from(call, args.inputs[0]);
              const RowSums saved{args.in<float>(5), delta};
              launch_blocks(args, blocks(call, call.extents.queries), kTileThreads,
                            query_grad_kernel<T>, call, from, saved, vectors, args.out<T>(0));
              launch_blocks(args, blocks(call, call.extents.keys), kTileThreads,
                            key_grad_kernel<T>, call, from, saved, vectors, args.out<T>(1),
                            args.out<T>(2));
            }};
  });
}

}  // namespace tidemark::attention
