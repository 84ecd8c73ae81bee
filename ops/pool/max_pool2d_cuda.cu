#include "ops/pool/max_pool2d.h"
#include "ops/pool/pixels_cuda.cuh"
#include "ops/pool/window_ranges.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

template <class Index, int kWidth>
struct alignas(sizeof(Index) * kWidth) IndexPack {
  Index v[kWidth];
};

template <int kWidth, class Index>
__global__ void __launch_bounds__(kLaunchThreads)
    max_pool_kernel(const __grid_constant__ WindowGrid grid, int64_t threads, FloatInput x,
                    FloatOutput y, Index* index) {
  const int64_t i = thread_index();
  if (i >= threads) return;
  const Pixel at = pixel_at<kWidth>(i, grid.rows.outputs, grid.columns.outputs, grid.channels);
  const Range rows = grid.rows.seen_sliding(at.row),
              columns = grid.columns.seen_sliding(at.column);
  const int64_t top = grid.rows.first_cell(at.row), left = grid.columns.first_cell(at.column);
  FloatPack<kWidth> best;
  int32_t cell[kWidth];
#pragma unroll
  for (int c = 0; c < kWidth; ++c) {
    best.v[c] = -INFINITY;
    cell[c] = -1;
  }
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      const auto values = load_pack<kWidth>(x + grid.input(at.n, h, w) + at.channel);
      const auto here = static_cast<int32_t>((h - top) * grid.columns.window + (w - left));
#pragma unroll
      for (int c = 0; c < kWidth; ++c) {
        const float value = values.v[c];
        const bool better = value > best.v[c] || value != value || cell[c] < 0;
        cell[c] = better ? here : cell[c];
        best.v[c] = better ? value : best.v[c];
      }
    }
  }
  const int64_t to = grid.output(at.n, at.row, at.column) + at.channel;
  store_pack<kWidth>(y + to, best);
  IndexPack<Index, kWidth> cells;
#pragma unroll
  for (int c = 0; c < kWidth; ++c) cells.v[c] = static_cast<Index>(cell[c]);
  *reinterpret_cast<IndexPack<Index, kWidth>*>(index + to) = cells;
}

// Each input gathers from the windows that see it, in their order: no two threads write to one
// place, and sums are in order.
template <int kWidth, class Index>
__global__ void __launch_bounds__(kLaunchThreads)
    max_pool_grad_kernel(const __grid_constant__ WindowGrid grid, int64_t threads,
                         FloatInput gy, const Index* index, FloatOutput gx) {
  const int64_t i = thread_index();
  if (i >= threads) return;
  const Pixel at = pixel_at<kWidth>(i, grid.rows.inputs, grid.columns.inputs, grid.channels);
  const Range rows = grid.rows.that_see_sliding(at.row),
              columns = grid.columns.that_see_sliding(at.column);
  FloatPack<kWidth> sum{};
  for (int64_t p = rows.begin; p < rows.end; ++p) {
    for (int64_t q = columns.begin; q < columns.end; ++q) {
      const int64_t from = grid.output(at.n, p, q) + at.channel;
      const auto here =
          static_cast<Index>((at.row - grid.rows.first_cell(p)) * grid.columns.window +
                             (at.column - grid.columns.first_cell(q)));
      const auto g = load_pack<kWidth>(gy + from);
      const auto cells = *reinterpret_cast<const IndexPack<Index, kWidth>*>(index + from);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) sum.v[c] += cells.v[c] == here ? g.v[c] : 0.0f;
    }
  }
  store_pack<kWidth>(gx + grid.input(at.n, at.row, at.column) + at.channel, sum);
}

template <class Index>
PreparedKernel prepare_forward(const OpQuery& query) {
  const Shape &x = query.inputs[0].shape, &y = query.outputs[0].shape;
  const WindowGrid grid = sliding_grid(x, y, query.attr<Pool2dAttrs>());
  const int width = channel_width(query, x[3]);
  const auto kernel = width == 4 ? max_pool_kernel<4, Index> : max_pool_kernel<1, Index>;
  return {Bytes(0), [=, threads = y.elements() / width](const KernelArgs& args) {
            launch(args, threads, kernel, grid, threads, float_input(args, 0),
                   float_output(args, 0), args.out<Index>(1));
          }};
}

template <class Index>
PreparedKernel prepare_backward(const OpQuery& query) {
  const Shape &x = query.outputs[0].shape, &y = query.inputs[0].shape;
  const WindowGrid grid = sliding_grid(x, y, query.attr<Pool2dGradAttrs>().pool);
  const int width = channel_width(query, x[3]);
  const auto kernel =
      width == 4 ? max_pool_grad_kernel<4, Index> : max_pool_grad_kernel<1, Index>;
  return {Bytes(0), [=, threads = x.elements() / width](const KernelArgs& args) {
            launch(args, threads, kernel, grid, threads, float_input(args, 0),
                   args.in<Index>(1), float_output(args, 0));
          }};
}

}  // namespace

void register_max_pool2d_cuda() {
  set_kernel(kMaxPool2d, Backend::kCuda, [](const OpQuery& query) {
    const bool bytes = query.outputs[1].dtype == DType::kUInt8;
    return bytes ? prepare_forward<uint8_t>(query) : prepare_forward<int32_t>(query);
  });
  set_kernel(kMaxPool2dGrad, Backend::kCuda, [](const OpQuery& query) {
    const bool bytes = query.inputs[1].dtype == DType::kUInt8;
    return bytes ? prepare_backward<uint8_t>(query) : prepare_backward<int32_t>(query);
  });
  set_kernel(kMaxPool2dGradFromInput, Backend::kCuda, [](const OpQuery& query) {
    return prepare_max_pool2d_grad_from_input(query, Backend::kCuda);
  });
}

}  // namespace tidemark
