#include "ops/pool/pixels_cuda.cuh"
#include "ops/pool/upsample.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// Each target gathers from its sources, in their order: no two threads write to one place.
template <int kWidth>
__global__ void __launch_bounds__(kLaunchThreads)
    upsample_kernel(const __grid_constant__ UpsampleGrid grid, int64_t threads, FloatInput from,
                    FloatOutput to) {
  const int64_t i = thread_index();
  if (i >= threads) return;
  const UpsampleAxis &slices = grid.slices, &rows = grid.rows, &columns = grid.columns;
  const int64_t depth = slices.targets();
  // Its n counts the slices of all volumes.
  const Pixel at = pixel_at<kWidth>(i, rows.targets(), columns.targets(), grid.channels);
  const int64_t n = UpsampleAxis::divide(at.n, depth), slice = at.n - n * depth;
  const Range ds = slices.sources_of(slice), hs = rows.sources_of(at.row),
              ws = columns.sources_of(at.column);
  FloatPack<kWidth> sum{};
  for (int64_t d = ds.begin; d < ds.end; ++d) {
    for (int64_t h = hs.begin; h < hs.end; ++h) {
      const float outer = slices.weight(slice, d) * rows.weight(at.row, h);
      const int64_t first =
          ((n * slices.sources() + d) * rows.sources() + h) * columns.sources();
#pragma unroll 1  // unrolled, the weights would spill registers
      for (int64_t w = ws.begin; w < ws.end; ++w) {
        const float weight = outer * columns.weight(at.column, w);
        const auto values = load_pack<kWidth>(from + (first + w) * grid.channels + at.channel);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) sum.v[c] += weight * values.v[c];
      }
    }
  }
  store_pack<kWidth>(to + i * kWidth, sum);
}

PreparedKernel prepare(const OpQuery& query, bool gradient) {
  const UpsampleGrid grid = upsample_grid(query, gradient);
  const int width = channel_width(query, grid.channels);
  const auto kernel = width == 4 ? upsample_kernel<4> : upsample_kernel<1>;
  const int64_t threads = query.outputs[0].shape.elements() / width;
  return {Bytes(0), [=](const KernelArgs& args) {
            launch(args, threads, kernel, grid, threads, float_input(args, 0),
                   float_output(args, 0));
          }};
}

}  // namespace

void register_upsample_cuda() {
  set_kernel(kUpsample, Backend::kCuda,
             [](const OpQuery& query) { return prepare(query, false); });
  set_kernel(kUpsampleGrad, Backend::kCuda,
             [](const OpQuery& query) { return prepare(query, true); });
}

}  // namespace tidemark
