// Combines the partial results of stretches of rows (column_tiles.h) into one result per
// column.
#pragma once

#include "ops/kernels/columns_cuda.cuh"

namespace tidemark::norm {

inline constexpr int kThreads = ColumnTiles::kThreads;
// Channels per block in the kernels that add up stretches. Few: this gives more blocks and
// shorter sums.
inline constexpr int kFinishChannels = 4;
inline constexpr int kFinishLanes = kThreads / kFinishChannels;

struct Pair {
  double a, b;
};

struct AddPairs {
  __device__ void operator()(Pair& a, const Pair& b) const {
    a.a += b.a;
    a.b += b.b;
  }
};

// Combines the partial results (stretches, channels) of this thread's channel. Lane 0 gets the
// full result.
template <class T, class Combine>
__device__ T combine_stretches(const ColumnTiles& tiles, const T* partial, int64_t channel,
                               const Combine& combine) {
  __shared__ T shared[kThreads];
  const int lane = threadIdx.x / kFinishChannels;
  T mine{};
  if (channel < tiles.columns) {
    for (int64_t s = lane; s < tiles.stretches; s += kFinishLanes) {
      combine(mine, partial[s * tiles.columns + channel]);
    }
  }
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kFinishLanes / 2; half > 0; half /= 2) {
    if (lane < half) combine(shared[threadIdx.x], shared[threadIdx.x + half * kFinishChannels]);
    __syncthreads();
  }
  return shared[threadIdx.x];
}

__device__ inline int64_t finish_channel() {
  return int64_t{blockIdx.x} * kFinishChannels + threadIdx.x % kFinishChannels;
}
__device__ inline bool finishes(const ColumnTiles& tiles, int64_t channel) {
  return threadIdx.x < kFinishChannels && channel < tiles.columns;
}
inline int64_t finish_blocks(const ColumnTiles& tiles) {
  return (tiles.columns + kFinishChannels - 1) / kFinishChannels;
}

}  // namespace tidemark::norm
