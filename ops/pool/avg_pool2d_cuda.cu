#include "ops/pool/avg_pool2d.h"
#include "ops/pool/pixels_cuda.cuh"
#include "ops/pool/window_ranges.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// `cells`: what a sum is divided by; 0: the number of cells inside the image.
struct Pooling {
  WindowGrid grid;
  int64_t cells = 0;

  Pooling(const AvgPool2dAttrs& attrs, const Shape& x, const Shape& y)
      : grid(attrs.adaptive ? adaptive_grid(x, y) : sliding_grid(x, y, attrs.pool)) {
    if (!attrs.adaptive && attrs.count_include_pad) {
      cells = attrs.pool.window[0] * attrs.pool.window[1];
    }
  }
};

__device__ float share_of(const Pooling& pooling, const Range& rows, const Range& columns) {
  const int64_t there = (rows.end - rows.begin) * (columns.end - columns.begin);
  return 1.0f / static_cast<float>(pooling.cells > 0 ? pooling.cells : there);
}

template <int kWidth>
__global__ void __launch_bounds__(kLaunchThreads)
    avg_pool_kernel(const __grid_constant__ Pooling pooling, int64_t threads, FloatInput x,
                    FloatOutput y) {
  const int64_t i = thread_index();
  if (i >= threads) return;
  const WindowGrid& grid = pooling.grid;
  const Pixel at = pixel_at<kWidth>(i, grid.rows.outputs, grid.columns.outputs, grid.channels);
  const Range rows = grid.rows.seen_from(at.row), columns = grid.columns.seen_from(at.column);
  FloatPack<kWidth> sum{};
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      const auto values = load_pack<kWidth>(x + grid.input(at.n, h, w) + at.channel);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sum.v[c] += values.v[c];
    }
  }
  const float share = share_of(pooling, rows, columns);
#pragma unroll
  for (int c = 0; c < kWidth; ++c) sum.v[c] *= share;
  store_pack<kWidth>(y + grid.output(at.n, at.row, at.column) + at.channel, sum);
}

template <int kWidth>
__global__ void __launch_bounds__(kLaunchThreads)
    avg_pool_grad_kernel(const __grid_constant__ Pooling pooling, int64_t threads,
                         FloatInput gy, FloatOutput gx) {
  const int64_t i = thread_index();
  if (i >= threads) return;
  const WindowGrid& grid = pooling.grid;
  const Pixel at = pixel_at<kWidth>(i, grid.rows.inputs, grid.columns.inputs, grid.channels);
  const Range rows = grid.rows.that_see(at.row), columns = grid.columns.that_see(at.column);
  FloatPack<kWidth> sum{};
  for (int64_t p = rows.begin; p < rows.end; ++p) {
    for (int64_t q = columns.begin; q < columns.end; ++q) {
      const float share = share_of(pooling, grid.rows.seen_from(p), grid.columns.seen_from(q));
      const auto g = load_pack<kWidth>(gy + grid.output(at.n, p, q) + at.channel);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sum.v[c] += g.v[c] * share;
    }
  }
  store_pack<kWidth>(gx + grid.input(at.n, at.row, at.column) + at.channel, sum);
}

PreparedKernel prepare_avg_pool2d(const OpQuery& query) {
  const Shape &x = query.inputs[0].shape, &y = query.outputs[0].shape;
  const Pooling pooling(query.attr<AvgPool2dAttrs>(), x, y);
  const int width = channel_width(query, x[3]);
  const auto kernel = width == 4 ? avg_pool_kernel<4> : avg_pool_kernel<1>;
  return {Bytes(0), [=, threads = y.elements() / width](const KernelArgs& args) {
            launch(args, threads, kernel, pooling, threads, float_input(args, 0),
                   float_output(args, 0));
          }};
}

PreparedKernel prepare_avg_pool2d_grad(const OpQuery& query) {
  const Shape &x = query.outputs[0].shape, &y = query.inputs[0].shape;
  const Pooling pooling(query.attr<AvgPool2dAttrs>(), x, y);
  const int width = channel_width(query, x[3]);
  const auto kernel = width == 4 ? avg_pool_grad_kernel<4> : avg_pool_grad_kernel<1>;
  return {Bytes(0), [=, threads = x.elements() / width](const KernelArgs& args) {
            launch(args, threads, kernel, pooling, threads, float_input(args, 0),
                   float_output(args, 0));
          }};
}

}  // namespace

void register_avg_pool2d_cuda() {
  set_kernel(kAvgPool2d, Backend::kCuda, prepare_avg_pool2d);
  set_kernel(kAvgPool2dGrad, Backend::kCuda, prepare_avg_pool2d_grad);
}

}  // namespace tidemark
