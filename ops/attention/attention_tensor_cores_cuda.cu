// Memory-efficient attention on tensor cores, in TF32 or bfloat16, with sums in float32, after
// FlashAttention-2 (Dao, 2023). A block handles a tile of 64 queries. Each of its four warps
// holds 16 of them, with their part of the scores and of the result, in registers; tiles of
// keys and values pass through shared memory. Backward is in
// attention_tensor_cores_grad_cuda.cu.
#include <algorithm>
#include <cmath>

#include "ops/attention/pairs_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/registry/kernels.h"

namespace tidemark::attention {
namespace {

// Calls f(part, i, value) for each of a thread's values.
template <int kCount, class F>
__device__ void for_each_value(FragmentC (&parts)[kCount], const F& f) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) f(n, i, parts[n].value[i]);
  }
}

// The softmax of a thread's two rows so far, in powers of two.
struct RunningSoftmax {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};

  // Turns scores into probabilities that lack the division by the sum, and gives the factors
  // that bring earlier results up to the new largest score.
  template <int kCount>
  __device__ void add(FragmentC (&scores)[kCount], float* shrink) {
    float shift[2] = {largest[0], largest[1]};
    for_each_value(scores,
                   [&](int, int i, float score) { shift[i / 2] = fmaxf(score, shift[i / 2]); });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      shift[half] = quad_reduce(shift[half], [](float a, float b) { return fmaxf(a, b); });
      const float before = largest[half];
      largest[half] = shift[half];
      if (shift[half] == -INFINITY) shift[half] = 0;  // no key yet: 2^(-infinity) is 0
      shrink[half] = fast_exp2(before - shift[half]);
      sum[half] *= shrink[half];
    }
    for_each_value(scores, [&](int, int i, float& score) {
      score = fast_exp2(score - shift[i / 2]);
      sum[i / 2] += score;
    });
  }
  // Once all columns are in. Returns what results are multiplied by.
  __device__ float finish(int half) {
    sum[half] = quad_reduce(sum[half], [](float a, float b) { return a + b; });
    return largest[half] == -INFINITY ? 0 : 1 / sum[half];
  }
  __device__ float log_sum(int half) const {
    return largest[half] == -INFINITY ? INFINITY : (largest[half] + log2f(sum[half])) * kLn2;
  }
};

template <class T, int kDepth>
using ForwardTiles = Tiles<T, kDepth, 1>;

template <class T, int kDepth, bool kStarts>
__global__ void __launch_bounds__(kTileThreads, kForwardBlocks<T, kDepth>)
    forward_kernel(const __grid_constant__ Call call, Operands<T> from, bool vectors, T* y,
                   float* log_sum) {
  using OwnTiles = ForwardTiles<T, kDepth>;
  using Own = typename OwnTiles::Own;
  using Passing = typename OwnTiles::Passing;
  constexpr int kCount = OwnTiles::kRows / 8;
  OwnTiles& tiles = block_shared<OwnTiles>();
  __shared__ TileKeys there[2];
  const Extents& extents = call.extents;
  const QueryPlace place(call);
  const Lane lane;
  const float scale = static_cast<float>(call.attrs.scale) * kLog2E;
  Own& queries = *tiles.own();
  from.q.load(queries, call, place, place.first, vectors);
  queries.finish();
  __syncthreads();
  const WarpRows<Own> q(queries, lane);
  __syncthreads();
  FragmentC out[Own::kDepthParts];
  PairBits drawn{};
  RunningSoftmax softmax;
  const Seen<kStarts> sees(call, place, lane);
  for_each_keys(tiles, there, from, call, place, sees, vectors, lane,
                [&](int first, int part0, const TileKeys& exist, const Passing& keys,
                    const Passing& values) {
                  FragmentC scores[kCount];
                  multiply_rows<kCount>(scores, q, keys, 0, lane);
                  for_each_value(scores, [&](int, int, float& score) { score *= scale; });
                  if (!sees.whole(first)) {
                    const PairBits seen = sees.bits(exist.all(), first, lane);
                    for_each_value(scores, [&](int part, int i, float& score) {
                      if (!seen.at(part0 + part, i)) score = -INFINITY;
                    });
                  }
                  float shrink[2];
                  softmax.add(scores, shrink);
                  for_each_value(out, [&](int, int i, float& sum) { sum *= shrink[i / 2]; });
                  if (kCount < kParts && call.dropout.active()) {
                    const PairBits kept =
                        draw_once<kCount>(drawn, part0, call, place.number, first, lane);
                    for_each_value(scores, [&](int part, int i, float& score) {
                      if (!kept.at(part0 + part, i)) score = 0;
                    });
                  } else if (call.dropout.active()) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                      draw_row(call, place.number + lane.row(2 * half), first, lane,
                               [&](int part, int i, bool kept) {
                                 if (!kept) scores[part].value[2 * half + i] = 0;
                               });
                    }
                  }
                  multiply_columns<kCount>(out, scores, values, 0, lane);
                });
  float share[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    share[half] = softmax.finish(half) * call.dropout.factor;
    const int row = lane.row(2 * half);
    if (lane.t == 0 && place.first + row < extents.queries) {
      log_sum[place.number + row] = softmax.log_sum(half);
    }
  }
  write_rows(y + call.whole_q.at(place.b, place.h, place.first), call.whole_q.row, out, share,
             extents.queries - place.first, extents.depth, lane);
}

}  // namespace

bool tensor_cores_take(const OpQuery& query, size_t at) {
  const TensorMeta &q = query.inputs[at], &k = query.inputs[at + 1];
  return (q.dtype == DType::kBFloat16 || query.tf32) && q.shape[3] <= kMaxDepth &&
         std::max(q.shape[1], k.shape[1]) <= kMaxRows && has_tensor_cores();
}

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

PreparedKernel prepare_tensor_cores_cuda(const OpQuery& query) {
  const Call prepared(query, 0, 3);
  const bool vectors = rows_are_aligned(query, 0);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [prepared, vectors](const KernelArgs& args) {
              const Call call = prepared.with(args);
              with_tile_depth(call.extents.depth, [&]<int kDepth>() {
                with_flag(call.starts.data, [&]<bool kStarts>() {
                  launch_sharing<ForwardTiles<T, kDepth>>(
                      args, tiles_of(call, call.extents.queries), kTileThreads,
                      forward_kernel<T, kDepth, kStarts>, call, Operands<T>(call, nullptr),
                      vectors, args.out<T>(0), args.out<float>(1));
                });
              });
            }};
  });
}

}  // namespace tidemark::attention
