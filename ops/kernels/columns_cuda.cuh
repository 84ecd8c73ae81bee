// Sums over the rows of matrices, on CUDA (column_tiles.h).
#pragma once

#include "ops/kernels/column_tiles.h"
#include "ops/kernels/launch_cuda.cuh"

namespace tidemark {

template <int kWidth>
struct alignas(4 * kWidth) FloatPack {
  float v[kWidth];
};

template <int kWidth>
__device__ inline FloatPack<kWidth> load_pack(const float* from) {
  return *reinterpret_cast<const FloatPack<kWidth>*>(from);
}
template <int kWidth>
__device__ inline void store_pack(float* to, const FloatPack<kWidth>& pack) {
  *reinterpret_cast<FloatPack<kWidth>*>(to) = pack;
}

// Whether four elements in a row of every input may be read as one: tensors' storages are
// aligned, views of them need not be.
inline bool vectors_fit(const OpQuery& query) {
  for (const TensorMeta& input : query.inputs) {
    if (input.offset * size_of(input.dtype).count() % 16 != 0) return false;
  }
  return true;
}

// `mine`, of kCount values, becomes the combination over the threads of a block that share its
// column; the values of the threads with row_lane 0 are whole. combine(a, b): a becomes both.
// REQUIRES: all threads of the block call it; `shared` has kThreads elements.
template <class T, class Combine>
__device__ void combine_row_lanes(const ColumnTiles& tiles, const ColumnTiles::Place& place,
                                  T* shared, T& mine, const Combine& combine) {
  __syncthreads();
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = place.row_step / 2; half > 0; half /= 2) {
    if (place.row_lane < half) {
      combine(mine, shared[threadIdx.x + half * tiles.lanes]);
      shared[threadIdx.x] = mine;
    }
    __syncthreads();
  }
}

// y (matrices, columns) = factor * sum over rows of x; matrix m starts at x + m *
// matrix_stride, its rows are row_stride apart and gapless. `vectors_fit`: x and both strides
// are multiples of 16 bytes.
struct ColumnSums {
  ColumnSums(int64_t matrix_count, int64_t rows, int64_t columns, int64_t matrix_step,
             int64_t row_step, bool vectors_fit);
  // For partial sums.
  Bytes workspace() const;
  void run(const KernelArgs& args, const float* x, float* y, double factor,
           std::byte* workspace) const;

  int64_t matrices, matrix_stride, row_stride;
  ColumnTiles tiles;
};

}  // namespace tidemark
