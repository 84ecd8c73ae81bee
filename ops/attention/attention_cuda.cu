// Memory-efficient attention in float32, for GPUs and heads that the tensor-core kernels do not
// take (attention_tensor_cores_cuda.cu). There is a block for each tile of queries (or keys)
// and eight threads for each of its rows. They share the row's result: thread i holds elements
// i, i + 8, ... in registers. Tiles of the other side pass through shared memory. Sums are in
// order, in float32; nothing is added atomically.
#include <cmath>

#include "ops/attention/call_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace attention {
namespace {

constexpr int kRowThreads = 8;

// Rows of a tile. The space that four of them take fits into a block's shared memory.
template <int kDepth>
constexpr int kTileRows = kDepth <= 64    ? 32
                          : kDepth <= 128 ? 16
                                          : 8;

// The odd row length puts rows that threads read side by side into different banks.
template <int kDepth>
struct RowTile {
  static constexpr int kRows = kTileRows<kDepth>;
  float at[kRows][kDepth + 1];

  // Loads `rows` rows of `depth` elements, times `factor`, and pads with zeros.
  __device__ void load(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
                       float factor) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kDepth; i += kRows * kRowThreads) {
      const int row = i / kDepth, d = i % kDepth;
      at[row][d] = row < rows && d < depth ? from[row * step + d] * factor : 0;
    }
  }
};

template <int kDepth>
__device__ float dot(const float* a, const float* b) {
  float sum = 0;
#pragma unroll 16
  for (int d = 0; d < kDepth; ++d) sum += a[d] * b[d];
  return sum;
}

template <int kDepth>
__global__ void __launch_bounds__(kTileRows<kDepth>* kRowThreads)
    forward_kernel(const __grid_constant__ Call call, FloatOutput y, float* log_sum) {
  constexpr int kRows = kTileRows<kDepth>, kEach = kDepth / kRowThreads;
  __shared__ RowTile<kDepth> q, keys_or_values;
  __shared__ float scores[kRows][kRows + 1], kept[kRows][kRows + 1];
  const Extents& extents = call.extents;
  const Place place(extents, extents.queries, kRows, call.attrs.causal != 0);
  const int row = static_cast<int>(threadIdx.x) / kRowThreads;
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const int64_t query = place.first + row;
  const int64_t number = place.head * extents.queries + query;
  q.load(call.q + call.q_rows.at(place.b, place.h, place.first), call.q_rows.row,
         extents.queries - place.first, extents.depth, static_cast<float>(call.attrs.scale));
  float out[kEach] = {};
  float largest = -INFINITY, sum = 0;
  const int64_t end = call.attrs.causal ? min(extents.keys, place.first + kRows) : extents.keys;
  const int64_t begin = call.first_key(place.b, place.first, kRows) / kRows * kRows;
  for (int64_t first = begin; first < end; first += kRows) {
    __syncthreads();
    keys_or_values.load(call.k + call.k_rows.at(place.b, place.h, first), call.k_rows.row,
                        extents.keys - first, extents.depth, 1);
    __syncthreads();
    for (int j = lane; j < kRows; j += kRowThreads) {
      scores[row][j] = call.sees(place.b, query, first + j)
                           ? dot<kDepth>(q.at[row], keys_or_values.at[j])
                           : -INFINITY;
    }
    __syncthreads();
    keys_or_values.load(call.v + call.v_rows.at(place.b, place.h, first), call.v_rows.row,
                        extents.keys - first, extents.depth, 1);
    float now = largest;
    for (int j = 0; j < kRows; ++j) now = scores[row][j] > now ? scores[row][j] : now;
    const float shift = now == -INFINITY ? 0 : now;  // no key yet: e^(-infinity) is 0
    const float shrink = expf(largest - shift);
    sum *= shrink;
    largest = now;
    __syncthreads();
    for (int j = lane; j < kRows; j += kRowThreads) {
      const float p = expf(scores[row][j] - shift);
      scores[row][j] = p;
      kept[row][j] = p * call.multiplier(number, first + j);
    }
    __syncthreads();
    for (int j = 0; j < kRows; ++j) sum += scores[row][j];
#pragma unroll
    for (int e = 0; e < kEach; ++e) out[e] *= shrink;
    for (int j = 0; j < kRows; ++j) {
      const float p = kept[row][j];
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        out[e] += p * keys_or_values.at[j][lane + e * kRowThreads];
      }
    }
  }
  if (query >= extents.queries) return;
  const float share = largest == -INFINITY ? 0 : 1 / sum;
  const FloatOutput to = y + call.whole_q.at(place.b, place.h, query);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int d = lane + e * kRowThreads;
    if (d < extents.depth) to.set(d, out[e] * share);
  }
  if (lane == 0) {
    log_sum[number] = largest == -INFINITY ? INFINITY : largest + logf(sum);
  }
}

__global__ void __launch_bounds__(kLaunchThreads)
    delta_kernel(const __grid_constant__ Call call, FloatInput g, FloatInput y, float* delta) {
  const int64_t i = thread_index() / kRowThreads;
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const bool inside = i < call.rows();
  float sum = 0;
  if (inside) {
    const int64_t head = i / call.extents.queries;
    const int64_t at = call.whole_q.at(head / call.extents.heads, head % call.extents.heads,
                                       i % call.extents.queries);
    for (int64_t d = lane; d < call.extents.depth; d += kRowThreads)
      sum += g[at + d] * y[at + d];
  }
  for (int step = 1; step < kRowThreads; step *= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, step);
  }
  if (inside && lane == 0) delta[i] = sum;
}

struct GradArguments {
  FloatInput g;
  const float *log_sum, *delta;
};

// A pair's contributions to the gradients: `kept` is M P, `ds` is P (M dP - delta). The scale
// is in q.
struct PairGrad {
  float kept, ds;
};
template <int kDepth>
__device__ PairGrad pair_grad(const Call& call, const GradArguments& from, int64_t b,
                              int64_t head, int64_t query, int64_t key, const float* q,
                              const float* g, const float* k, const float* v) {
  if (query >= call.extents.queries || !call.sees(b, query, key)) return {0, 0};
  const int64_t number = head * call.extents.queries + query;
  const float p = expf(dot<kDepth>(q, k) - from.log_sum[number]);
  const float multiplier = call.multiplier(number, key);
  return {p * multiplier, p * (dot<kDepth>(g, v) * multiplier - from.delta[number])};
}

template <int kDepth>
__global__ void __launch_bounds__(kTileRows<kDepth>* kRowThreads)
    query_grad_kernel(const __grid_constant__ Call call, GradArguments from, FloatOutput dq) {
  constexpr int kRows = kTileRows<kDepth>, kEach = kDepth / kRowThreads;
  __shared__ RowTile<kDepth> q, g, k, v;
  __shared__ float ds[kRows][kRows + 1];
  const Extents& extents = call.extents;
  const Place place(extents, extents.queries, kRows, call.attrs.causal != 0);
  const int row = static_cast<int>(threadIdx.x) / kRowThreads;
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const int64_t query = place.first + row;
  const float scale = static_cast<float>(call.attrs.scale);
  q.load(call.q + call.q_rows.at(place.b, place.h, place.first), call.q_rows.row,
         extents.queries - place.first, extents.depth, scale);
  g.load(from.g + call.whole_q.at(place.b, place.h, place.first), call.whole_q.row,
         extents.queries - place.first, extents.depth, 1);
  float out[kEach] = {};
  const int64_t end = call.attrs.causal ? min(extents.keys, place.first + kRows) : extents.keys;
  const int64_t begin = call.first_key(place.b, place.first, kRows) / kRows * kRows;
  for (int64_t first = begin; first < end; first += kRows) {
    __syncthreads();
    k.load(call.k + call.k_rows.at(place.b, place.h, first), call.k_rows.row,
           extents.keys - first, extents.depth, 1);
    v.load(call.v + call.v_rows.at(place.b, place.h, first), call.v_rows.row,
           extents.keys - first, extents.depth, 1);
    __syncthreads();
    for (int j = lane; j < kRows; j += kRowThreads) {
      ds[row][j] = pair_grad<kDepth>(call, from, place.b, place.head, query, first + j,
                                     q.at[row], g.at[row], k.at[j], v.at[j])
                       .ds;
    }
    __syncthreads();
    for (int j = 0; j < kRows; ++j) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) out[e] += ds[row][j] * k.at[j][lane + e * kRowThreads];
    }
  }
  if (query >= extents.queries) return;
  const FloatOutput to = dq + call.whole_q.at(place.b, place.h, query);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int d = lane + e * kRowThreads;
    if (d < extents.depth) to.set(d, out[e] * scale);
  }
}

template <int kDepth>
__global__ void __launch_bounds__(kTileRows<kDepth>* kRowThreads)
    key_grad_kernel(const __grid_constant__ Call call, GradArguments from, FloatOutput dk,
                    FloatOutput dv) {
  constexpr int kRows = kTileRows<kDepth>, kEach = kDepth / kRowThreads;
  __shared__ RowTile<kDepth> q, g, k, v;
  __shared__ float ds[kRows][kRows + 1], kept[kRows][kRows + 1];
  const Extents& extents = call.extents;
  const Place place(extents, extents.keys, kRows);
  const int row = static_cast<int>(threadIdx.x) / kRowThreads;
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const int64_t key = place.first + row;
  k.load(call.k + call.k_rows.at(place.b, place.h, place.first), call.k_rows.row,
         extents.keys - place.first, extents.depth, 1);
  v.load(call.v + call.v_rows.at(place.b, place.h, place.first), call.v_rows.row,
         extents.keys - place.first, extents.depth, 1);
  float dk_out[kEach] = {}, dv_out[kEach] = {};
  // Queries before the tile's first key do not see that key.
  for (int64_t first = call.attrs.causal ? place.first : 0; first < extents.queries;
       first += kRows) {
    if (call.first_key(place.b, first, kRows) >= place.first + kRows) continue;
    __syncthreads();
    q.load(call.q + call.q_rows.at(place.b, place.h, first), call.q_rows.row,
           extents.queries - first, extents.depth, static_cast<float>(call.attrs.scale));
    g.load(from.g + call.whole_q.at(place.b, place.h, first), call.whole_q.row,
           extents.queries - first, extents.depth, 1);
    __syncthreads();
    for (int i = lane; i < kRows; i += kRowThreads) {
      const PairGrad pair = pair_grad<kDepth>(call, from, place.b, place.head, first + i, key,
                                              q.at[i], g.at[i], k.at[row], v.at[row]);
      ds[row][i] = pair.ds;
      kept[row][i] = pair.kept;
    }
    __syncthreads();
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int d = lane + e * kRowThreads;
        dk_out[e] += ds[row][i] * q.at[i][d];
        dv_out[e] += kept[row][i] * g.at[i][d];
      }
    }
  }
  if (key >= extents.keys) return;
  const int64_t to = call.whole_k.at(place.b, place.h, key);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int d = lane + e * kRowThreads;
    if (d >= extents.depth) continue;
    dk.set(to + d, dk_out[e]);
    dv.set(to + d, dv_out[e]);
  }
}

constexpr int64_t kMaxDepth = 256;

// Calls f.template operator()<kDepth>() with the padded length of a row.
template <class F>
void with_depth(int64_t depth, const F& f) {
  if (depth <= 32) return f.template operator()<32>();
  if (depth <= 64) return f.template operator()<64>();
  if (depth <= 128) return f.template operator()<128>();
  f.template operator()<kMaxDepth>();
}

void check_depth(const Call& call) {
  if (call.extents.depth <= kMaxDepth) return;
  throw UsageError("[attention] heads of " + std::to_string(call.extents.depth) +
                   " elements: memory-efficient attention on CUDA takes at most " +
                   std::to_string(kMaxDepth));
}

template <int kDepth>
int64_t blocks(const Call& call, int64_t along) {
  constexpr int64_t kRows = kTileRows<kDepth>;
  return (along + kRows - 1) / kRows * call.extents.all_heads();
}

PreparedKernel prepare(const OpQuery& query) {
  if (query.attr<AttentionAttrs>().materialised()) return prepare_materialised_cuda(query);
  if (tensor_cores_take(query, 0)) return prepare_tensor_cores_cuda(query);
  const Call prepared(query, 0, 3);
  check_depth(prepared);
  return {Bytes(0), [prepared](const KernelArgs& args) {
            const Call call = prepared.with(args);
            with_depth(call.extents.depth, [&]<int kDepth>() {
              launch_blocks(args, blocks<kDepth>(call, call.extents.queries),
                            kTileRows<kDepth> * kRowThreads, forward_kernel<kDepth>, call,
                            float_output(args, 0), args.out<float>(1));
            });
          }};
}

// g, q, k, v, y, log_sum[, keys][, starts] -> dq, dk, dv
PreparedKernel prepare_grad(const OpQuery& query) {
  if (query.attr<AttentionAttrs>().materialised()) {
    return prepare_materialised_grad_cuda(query);
  }
  if (tensor_cores_take(query, 1)) return prepare_tensor_cores_grad_cuda(query);
  const Call prepared(query, 1, 6);
  check_depth(prepared);
  return {size_of(DType::kFloat32) * prepared.rows(), [prepared](const KernelArgs& args) {
            const Call call = prepared.with(args);
            float* delta = reinterpret_cast<float*>(args.workspace);
            launch_delta(args, call, float_input(args, 0), float_input(args, 4), delta);
            const GradArguments from{float_input(args, 0), args.in<float>(5), delta};
            with_depth(call.extents.depth, [&]<int kDepth>() {
              constexpr int kThreads = kTileRows<kDepth> * kRowThreads;
              launch_blocks(args, blocks<kDepth>(call, call.extents.queries), kThreads,
                            query_grad_kernel<kDepth>, call, from, float_output(args, 0));
              launch_blocks(args, blocks<kDepth>(call, call.extents.keys), kThreads,
                            key_grad_kernel<kDepth>, call, from, float_output(args, 1),
                            float_output(args, 2));
            });
          }};
}

}  // namespace

void launch_delta(const KernelArgs& args, const Call& call, const FloatInput& g,
                  const FloatInput& y, float* delta) {
  launch(args, call.rows() * kRowThreads, delta_kernel, call, g, y, delta);
}

}  // namespace attention

void register_attention_cuda() {
  set_kernel(kAttention, Backend::kCuda, attention::prepare);
  set_kernel(kAttentionGrad, Backend::kCuda, attention::prepare_grad);
}

}  // namespace tidemark
