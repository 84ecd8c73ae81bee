// One block per row, whose second read comes from the cache; in vectors of 16 bytes where the
// rows allow it. Sums over rows follow column_tiles.h.
#include "ops/kernels/block_cuda.cuh"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/stretches_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using norm::AddPairs;
using norm::Pair;

template <int kThreads, int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(int64_t columns, double eps, const T* x, const float* gamma,
                   const float* beta, T* y, float* mean_out, float* rstd_out) {
  const T* from = x + blockIdx.x * columns;
  T* to = y + blockIdx.x * columns;
  const int64_t first = int64_t{threadIdx.x} * kWidth, step = kThreads * kWidth;
  float sum = 0;
  for (int64_t c = first; c < columns; c += step) {
    const auto pack = load_pack<kWidth>(from + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += pack.v[i];
  }
  const double share = 1.0 / static_cast<double>(columns);
  const float mean = static_cast<float>(block_sum<kThreads>(static_cast<double>(sum)) * share);
  float squares = 0;
  for (int64_t c = first; c < columns; c += step) {
    const auto pack = load_pack<kWidth>(from + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += (pack.v[i] - mean) * (pack.v[i] - mean);
  }
  const double var = block_sum<kThreads>(static_cast<double>(squares)) * share;
  const float rstd = static_cast<float>(1 / sqrt(var + eps));
  for (int64_t c = first; c < columns; c += step) {
    auto pack = load_pack<kWidth>(from + c);
    const auto scale = load_pack<kWidth>(gamma + c), shift = load_pack<kWidth>(beta + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      pack.v[i] = (pack.v[i] - mean) * rstd * scale.v[i] + shift.v[i];
    }
    store_pack<kWidth>(to + c, pack);
  }
  if (threadIdx.x == 0) {
    mean_out[blockIdx.x] = mean;
    rstd_out[blockIdx.x] = rstd;
  }
}

template <class T>
struct GradInputs {
  const T* x;
  const T* gy;
  const float* gamma;
  const float* mean;
  const float* rstd;
};

struct PlusPairs {
  __device__ Pair operator()(Pair a, const Pair& b) const {
    AddPairs()(a, b);
    return a;
  }
};

template <int kThreads, int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    grad_input_kernel(int64_t columns, GradInputs<T> in, T* gx) {
  const int64_t start = blockIdx.x * columns;
  const float mean = in.mean[blockIdx.x], rstd = in.rstd[blockIdx.x];
  const int64_t first = int64_t{threadIdx.x} * kWidth, step = kThreads * kWidth;
  float sum = 0, product = 0;
  for (int64_t c = first; c < columns; c += step) {
    const auto x = load_pack<kWidth>(in.x + start + c),
               gy = load_pack<kWidth>(in.gy + start + c);
    const auto gamma = load_pack<kWidth>(in.gamma + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float g = gy.v[i] * gamma.v[i];
      sum += g;
      product += g * ((x.v[i] - mean) * rstd);
    }
  }
  const Pair total = block_reduce<kThreads>(Pair{sum, product}, PlusPairs());
  const float share = 1.0F / static_cast<float>(columns);
  const float a = static_cast<float>(total.a) * share, b = static_cast<float>(total.b) * share;
  for (int64_t c = first; c < columns; c += step) {
    const auto x = load_pack<kWidth>(in.x + start + c),
               gy = load_pack<kWidth>(in.gy + start + c);
    const auto gamma = load_pack<kWidth>(in.gamma + c);
    FloatPack<kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float h = (x.v[i] - mean) * rstd;
      out.v[i] = rstd * ((gy.v[i] * gamma.v[i] - a) - h * b);
    }
    store_pack<kWidth>(gx + start + c, out);
  }
}

template <int kWidth>
struct GradRow {
  FloatPack<kWidth> x, gy;
  float mean, rstd;
};

// Sums of gy * h and of gy, per column.
template <int kWidth, class T>
__global__ void __launch_bounds__(norm::kThreads)
    grad_sums_kernel(ColumnTiles tiles, GradInputs<T> in, Pair* partial) {
  __shared__ Pair shared[norm::kThreads];
  const auto place = tiles.place(blockIdx.x, threadIdx.x);
  const bool inside = place.column < tiles.columns;
  float product[kWidth] = {}, sum[kWidth] = {};
  if (inside) {
    const auto load = [&](int64_t r) {
      const int64_t at = r * tiles.columns + place.column;
      return GradRow<kWidth>{load_pack<kWidth>(in.x + at), load_pack<kWidth>(in.gy + at),
                             in.mean[r], in.rstd[r]};
    };
    for_rows<2>(place, load, [&](int64_t, const GradRow<kWidth>& row) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        product[i] += row.gy.v[i] * ((row.x.v[i] - row.mean) * row.rstd);
        sum[i] += row.gy.v[i];
      }
    });
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    combine_row_lanes(tiles, place, shared, Pair{product[i], sum[i]}, AddPairs(), i,
                      partial + place.stretch * tiles.columns);
  }
}

__global__ void __launch_bounds__(norm::kThreads)
    finish_grad(ColumnTiles tiles, const Pair* partial, float* ggamma, float* gbeta) {
  const int64_t c = norm::finish_channel();
  const Pair total = norm::combine_stretches(tiles, partial, c, AddPairs());
  if (!norm::finishes(tiles, c)) return;
  ggamma[c] = static_cast<float>(total.a);
  gbeta[c] = static_cast<float>(total.b);
}

PreparedKernel prepare_layer_norm(const OpQuery& query) {
  const int64_t columns = query.inputs[0].shape.back();
  const int64_t rows = query.inputs[0].shape.elements() / columns;
  const bool wide = columns % 4 == 0 && vectors_fit(query);
  const double eps = query.attr<LayerNormAttrs>().eps;
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [=](const KernelArgs& args) {
              with_row_threads(columns, [&]<int kThreads>() {
                const auto kernel =
                    wide ? forward_kernel<kThreads, 4, T> : forward_kernel<kThreads, 1, T>;
                launch_blocks(args, rows, kThreads, kernel, columns, eps, args.in<T>(0),
                              args.in<float>(1), args.in<float>(2), args.out<T>(0),
                              args.out<float>(1), args.out<float>(2));
              });
            }};
  });
}

PreparedKernel prepare_layer_norm_grad(const OpQuery& query) {
  const int64_t columns = query.inputs[0].shape.back();
  const int64_t rows = query.inputs[0].shape.elements() / columns;
  const bool wide = columns % 4 == 0 && vectors_fit(query);
  const ColumnTiles tiles(rows, columns, 1, wide);
  const Bytes workspace(tiles.stretches * columns * static_cast<int64_t>(sizeof(Pair)));
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {workspace, [=](const KernelArgs& args) {
              const GradInputs<T> in{args.in<T>(0), args.in<T>(1), args.in<float>(2),
                                     args.in<float>(3), args.in<float>(4)};
              Pair* partial = reinterpret_cast<Pair*>(args.workspace);
              // The sums come first: gx may overwrite x or gy.
              const auto sums = wide ? grad_sums_kernel<4, T> : grad_sums_kernel<1, T>;
              launch_blocks(args, tiles.blocks(), norm::kThreads, sums, tiles, in, partial);
              with_row_threads(columns, [&]<int kThreads>() {
                const auto kernel = wide ? grad_input_kernel<kThreads, 4, T>
                                         : grad_input_kernel<kThreads, 1, T>;
                launch_blocks(args, rows, kThreads, kernel, columns, in, args.out<T>(0));
              });
              launch_blocks(args, norm::finish_blocks(tiles), norm::kThreads, finish_grad,
                            tiles, partial, args.out<float>(1), args.out<float>(2));
            }};
  });
}

}  // namespace

void register_layer_norm_cuda() {
  set_kernel(kLayerNorm, Backend::kCuda, prepare_layer_norm);
  set_kernel(kLayerNormGrad, Backend::kCuda, prepare_layer_norm_grad);
}

}  // namespace tidemark
