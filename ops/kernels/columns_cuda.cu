#include "ops/kernels/columns_cuda.cuh"

namespace tidemark {
namespace {

constexpr int kThreads = ColumnTiles::kThreads;

// partial (matrices, stretches, columns)
template <int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    partial_sums(ColumnTiles tiles, int64_t matrix_stride, int64_t row_stride, const T* x,
                 double* partial) {
  __shared__ double shared[kThreads];
  const int64_t blocks = tiles.tiles * tiles.stretches;
  const int64_t matrix = blockIdx.x / blocks;
  const auto place = tiles.place(blockIdx.x % blocks, threadIdx.x);
  const bool inside = place.column < tiles.columns;
  float sums[kWidth] = {};
  if (inside) {
    const T* from = x + matrix * matrix_stride + place.column;
    const auto load = [&](int64_t r) { return load_pack<kWidth>(from + r * row_stride); };
    for_rows<4>(place, load, [&](int64_t, const FloatPack<kWidth>& pack) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[i] += pack.v[i];
    });
  }
  double* to = partial + (matrix * tiles.stretches + place.stretch) * tiles.columns;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const auto add = [](double& a, double b) { a += b; };
    combine_row_lanes(tiles, place, shared, double{sums[i]}, add, i, to);
  }
}

// Each block takes sixteen columns of a matrix, with sixteen lanes over the stretches.
__global__ void __launch_bounds__(kThreads)
    finish_sums(int64_t stretches, int64_t columns, int64_t column_blocks, double factor,
                const double* partial, FloatOutput y) {
  __shared__ double shared[kThreads];
  const int lane = threadIdx.x / 16;
  const int64_t matrix = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * 16 + threadIdx.x % 16;
  double total = 0;
  if (column < columns) {
    const double* from = partial + matrix * stretches * columns + column;
#pragma unroll 4
    for (int64_t s = lane; s < stretches; s += 16) total += from[s * columns];
  }
  shared[threadIdx.x] = total;
  __syncthreads();
  for (int half = 8; half > 0; half /= 2) {
    if (lane < half) shared[threadIdx.x] += shared[threadIdx.x + half * 16];
    __syncthreads();
  }
  if (lane == 0 && column < columns) {
    y.set(matrix * columns + column, static_cast<float>(shared[threadIdx.x] * factor));
  }
}

}  // namespace

ColumnSums::ColumnSums(int64_t matrix_count, int64_t rows, int64_t columns, int64_t matrix_step,
                       int64_t row_step, bool vectors_fit)
    : matrices(matrix_count),
      matrix_stride(matrix_step),
      row_stride(row_step),
      tiles(rows, columns, matrix_count, vectors_fit) {}

Bytes ColumnSums::workspace() const {
  return Bytes(matrices * tiles.stretches * tiles.columns * 8);
}

template <class T>
void ColumnSums::run(const KernelArgs& args, const T* x, FloatOutput y, double factor,
                     std::byte* workspace) const {
  double* partial = reinterpret_cast<double*>(workspace);
  launch_blocks(args, matrices * tiles.blocks(), kThreads,
                tiles.width == 4 ? partial_sums<4, T> : partial_sums<1, T>, tiles,
                matrix_stride, row_stride, x, partial);
  const int64_t column_blocks = (tiles.columns + 15) / 16;
  launch_blocks(args, matrices * column_blocks, kThreads, finish_sums, tiles.stretches,
                tiles.columns, column_blocks, factor, partial, y);
}

template void ColumnSums::run(const KernelArgs&, const float*, FloatOutput, double,
                              std::byte*) const;
template void ColumnSums::run(const KernelArgs&, const BFloat16*, FloatOutput, double,
                              std::byte*) const;

}  // namespace tidemark
