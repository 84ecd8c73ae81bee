// Reductions within a block, by CUB, in a fixed order.
#pragma once

#include <cub/block/block_reduce.cuh>
#include <cuda/std/functional>

#include "ops/kernels/launch_cuda.cuh"

namespace tidemark {

// Combines the values of all threads; every thread gets the result. REQUIRES: the block has
// kThreads threads, and all of them call it.
template <int kThreads, class T, class Op>
__device__ T block_reduce(const T& value, const Op& op) {
  using Reduce = cub::BlockReduce<T, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ T result;
  __syncthreads();  // earlier readers may not be done
  const T total = Reduce(storage).Reduce(value, op);
  if (threadIdx.x == 0) result = total;
  __syncthreads();
  return result;
}

template <int kThreads, class T>
__device__ T block_sum(const T& value) {
  return block_reduce<kThreads>(value, ::cuda::std::plus<T>());
}

// Calls f.template operator()<threads>(), with 32 threads per block for short rows and 256 for
// others.
template <class F>
void with_row_threads(int64_t length, const F& f) {
  if (length <= 1024) return f.template operator()<32>();
  f.template operator()<256>();
}

}  // namespace tidemark
