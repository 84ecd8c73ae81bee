// One block per row, whose second read comes from the cache; in vectors of 16 bytes where the
// rows allow it. Sums over rows follow column_tiles.h.
#include "ops/kernels/block_cuda.cuh"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/stretches_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

template <int kThreads, int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(int64_t columns, double eps, const T* x, const float* weight, T* y,
                   float* rstd_out) {
  const T* from = x + blockIdx.x * columns;
  T* to = y + blockIdx.x * columns;
  const int64_t first = int64_t{threadIdx.x} * kWidth, step = kThreads * kWidth;
  float sum = 0;
  for (int64_t c = first; c < columns; c += step) {
    const auto pack = load_pack<kWidth>(from + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += pack.v[i] * pack.v[i];
  }
  const double share = 1.0 / static_cast<double>(columns);
  const double square = block_sum<kThreads>(static_cast<double>(sum)) * share;
  const float rstd = static_cast<float>(1 / sqrt(square + eps));
  for (int64_t c = first; c < columns; c += step) {
    auto pack = load_pack<kWidth>(from + c);
    const auto scale = load_pack<kWidth>(weight + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.v[i] = pack.v[i] * rstd * scale.v[i];
    store_pack<kWidth>(to + c, pack);
  }
  if (threadIdx.x == 0) rstd_out[blockIdx.x] = rstd;
}

template <class T>
struct GradInputs {
  const T* x;
  const T* gy;
  const float* weight;
  const float* rstd;
};

template <int kThreads, int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    grad_input_kernel(int64_t columns, GradInputs<T> in, T* gx) {
  const int64_t start = blockIdx.x * columns;
  const float rstd = in.rstd[blockIdx.x];
  const int64_t first = int64_t{threadIdx.x} * kWidth, step = kThreads * kWidth;
  float sum = 0;
  for (int64_t c = first; c < columns; c += step) {
    const auto x = load_pack<kWidth>(in.x + start + c),
               gy = load_pack<kWidth>(in.gy + start + c);
    const auto weight = load_pack<kWidth>(in.weight + c);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += gy.v[i] * weight.v[i] * (x.v[i] * rstd);
  }
  const double share = 1.0 / static_cast<double>(columns);
  const float mean = static_cast<float>(block_sum<kThreads>(static_cast<double>(sum)) * share);
  for (int64_t c = first; c < columns; c += step) {
    const auto x = load_pack<kWidth>(in.x + start + c),
               gy = load_pack<kWidth>(in.gy + start + c);
    const auto weight = load_pack<kWidth>(in.weight + c);
    FloatPack<kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      out.v[i] = rstd * (gy.v[i] * weight.v[i] - x.v[i] * rstd * mean);
    }
    store_pack<kWidth>(gx + start + c, out);
  }
}

template <int kWidth>
struct GradRow {
  FloatPack<kWidth> x, gy;
  float rstd;
};

struct AddNumbers {
  __device__ void operator()(double& a, double b) const { a += b; }
};

// Sums of gy * h, per column.
template <int kWidth, class T>
__global__ void __launch_bounds__(norm::kThreads)
    grad_sums_kernel(ColumnTiles tiles, GradInputs<T> in, double* partial) {
  __shared__ double shared[norm::kThreads];
  const auto place = tiles.place(blockIdx.x, threadIdx.x);
  float sum[kWidth] = {};
  if (place.column < tiles.columns) {
    const auto load = [&](int64_t r) {
      const int64_t at = r * tiles.columns + place.column;
      return GradRow<kWidth>{load_pack<kWidth>(in.x + at), load_pack<kWidth>(in.gy + at),
                             in.rstd[r]};
    };
    for_rows<2>(place, load, [&](int64_t, const GradRow<kWidth>& row) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] += row.gy.v[i] * (row.x.v[i] * row.rstd);
    });
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    combine_row_lanes(tiles, place, shared, double{sum[i]}, AddNumbers(), i,
                      partial + place.stretch * tiles.columns);
  }
}

__global__ void __launch_bounds__(norm::kThreads)
    finish_grad(ColumnTiles tiles, const double* partial, float* gweight) {
  const int64_t c = norm::finish_channel();
  const double total = norm::combine_stretches(tiles, partial, c, AddNumbers());
  if (norm::finishes(tiles, c)) gweight[c] = static_cast<float>(total);
}

PreparedKernel prepare_rms_norm(const OpQuery& query) {
  const int64_t columns = query.inputs[0].shape.back();
  const int64_t rows = query.inputs[0].shape.elements() / columns;
  const bool wide = columns % 4 == 0 && vectors_fit(query);
  const double eps = query.attr<RmsNormAttrs>().eps;
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [=](const KernelArgs& args) {
              with_row_threads(columns, [&]<int kThreads>() {
                const auto kernel =
                    wide ? forward_kernel<kThreads, 4, T> : forward_kernel<kThreads, 1, T>;
                launch_blocks(args, rows, kThreads, kernel, columns, eps, args.in<T>(0),
                              args.in<float>(1), args.out<T>(0), args.out<float>(1));
              });
            }};
  });
}

PreparedKernel prepare_rms_norm_grad(const OpQuery& query) {
  const int64_t columns = query.inputs[0].shape.back();
  const int64_t rows = query.inputs[0].shape.elements() / columns;
  const bool wide = columns % 4 == 0 && vectors_fit(query);
  const bool frozen = query.attr<RmsNormGradAttrs>().frozen != 0;
  const ColumnTiles tiles(rows, columns, 1, wide);
  const Bytes workspace(frozen ? 0 : tiles.stretches * columns * 8);
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {workspace, [=](const KernelArgs& args) {
              const GradInputs<T> in{args.in<T>(0), args.in<T>(1), args.in<float>(2),
                                     args.in<float>(3)};
              double* partial = reinterpret_cast<double*>(args.workspace);
              // The sums come first: gx may overwrite x or gy.
              if (!frozen) {
                const auto sums = wide ? grad_sums_kernel<4, T> : grad_sums_kernel<1, T>;
                launch_blocks(args, tiles.blocks(), norm::kThreads, sums, tiles, in, partial);
              }
              with_row_threads(columns, [&]<int kThreads>() {
                const auto kernel = wide ? grad_input_kernel<kThreads, 4, T>
                                         : grad_input_kernel<kThreads, 1, T>;
                launch_blocks(args, rows, kThreads, kernel, columns, in, args.out<T>(0));
              });
              if (!frozen) {
                launch_blocks(args, norm::finish_blocks(tiles), norm::kThreads, finish_grad,
                              tiles, partial, args.out<float>(1));
              }
            }};
  });
}

}  // namespace

void register_rms_norm_cuda() {
  set_kernel(kRmsNorm, Backend::kCuda, prepare_rms_norm);
  set_kernel(kRmsNormGrad, Backend::kCuda, prepare_rms_norm_grad);
}

}  // namespace tidemark
