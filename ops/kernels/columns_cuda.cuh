// Sums over the rows of matrices, on CUDA (column_tiles.h).
#pragma once

#include "ops/kernels/any_float.h"
#include "ops/kernels/column_tiles.h"
#include "ops/kernels/launch_cuda.cuh"

namespace tidemark {

template <int kWidth>
struct alignas(4 * kWidth) FloatPack {
  float v[kWidth];
};

// A pack of elements in their stored type.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) StoredPack {
  T v[kWidth];
};

// Converts from and to float or BFloat16, as one vector.
template <int kWidth, class T>
__device__ inline FloatPack<kWidth> load_pack(const T* from) {
  const auto stored = *reinterpret_cast<const StoredPack<T, kWidth>*>(from);
  FloatPack<kWidth> pack;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) pack.v[i] = stored.v[i];
  return pack;
}
template <int kWidth, class T>
__device__ inline void store_pack(T* to, const FloatPack<kWidth>& pack) {
  StoredPack<T, kWidth> stored;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) stored.v[i] = pack.v[i];
  *reinterpret_cast<StoredPack<T, kWidth>*>(to) = stored;
}
template <int kWidth>
__device__ inline FloatPack<kWidth> load_pack(const FloatInput& from) {
  if (from.bfloat16) return load_pack<kWidth>(static_cast<const BFloat16*>(from.data));
  return load_pack<kWidth>(static_cast<const float*>(from.data));
}
template <int kWidth>
__device__ inline void store_pack(const FloatOutput& to, const FloatPack<kWidth>& pack) {
  if (to.bfloat16) {
    store_pack<kWidth>(static_cast<BFloat16*>(to.data), pack);
  } else {
    store_pack<kWidth>(static_cast<float*>(to.data), pack);
  }
}

// Whether four neighbouring elements of a row can be read as one vector in every input. A
// tensor's storage is aligned; a view may not be.
inline bool vectors_fit(const OpQuery& query) {
  for (const TensorMeta& input : query.inputs) {
    if (input.offset * size_of(input.dtype).count() % 16 != 0) return false;
  }
  return true;
}

// Calls use(row, load(row)) for the rows of `place`, in order. kBatch rows are loaded before
// the first is used, so that kBatch reads are in flight at once. Unrolling alone does not
// achieve this: with a step known only at run time, each load would wait for the loop's exit
// test.
template <int kBatch, class Load, class Use>
__device__ void for_rows(const ColumnTiles::Place& place, const Load& load, const Use& use) {
  const int64_t step = place.row_step;
  int64_t row = place.first_row;
  for (; row + (kBatch - 1) * step < place.end_row; row += kBatch * step) {
    decltype(load(row)) loaded[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) loaded[i] = load(row + i * step);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) use(row + i * step, loaded[i]);
  }
  for (; row < place.end_row; row += step) use(row, load(row));
}

// Combines `mine` over the threads of a block that share a column, and writes the result of
// column i of each thread's pack to `to`, where there is such a column. combine(a, b) stores
// the combination in a. REQUIRES: all threads of the block call it; `shared` has kThreads
// elements.
template <class T, class Combine>
__device__ void combine_row_lanes(const ColumnTiles& tiles, const ColumnTiles::Place& place,
                                  T* shared, T mine, const Combine& combine, int i, T* to) {
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
  if (place.column < tiles.columns && place.row_lane == 0) to[place.column + i] = mine;
}

// y (matrices, columns) = factor * sum over rows of x. Matrix m starts at x + m *
// matrix_stride; its rows are gapless and row_stride apart. `vectors_fit`: x and both strides
// are multiples of four elements.
struct ColumnSums {
  ColumnSums(int64_t matrix_count, int64_t rows, int64_t columns, int64_t matrix_step,
             int64_t row_step, bool vectors_fit);
  // Bytes needed for partial sums.
  Bytes workspace() const;
  // T: float or BFloat16.
  template <class T>
  void run(const KernelArgs& args, const T* x, FloatOutput y, double factor,
           std::byte* workspace) const;

  int64_t matrices, matrix_stride, row_stride;
  ColumnTiles tiles;
};

}  // namespace tidemark
