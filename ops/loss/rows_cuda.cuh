// What softmax, its logarithm and cross entropy need of a row first.
#pragma once

#include "ops/kernels/block_cuda.cuh"

namespace tidemark {

struct RowMoments {
  float largest;
  double sum;  // of e^(x - largest)
};

struct Larger {
  __device__ float operator()(float a, float b) const { return b > a ? b : a; }
};

// For all threads of the block. Not-a-number, or a row of -infinity alone, makes the sum
// not-a-number.
template <int kThreads, class T>
__device__ RowMoments row_moments(const T* x, int64_t classes) {
  float largest = -INFINITY;
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) largest = Larger()(largest, x[c]);
  RowMoments row;
  row.largest = block_reduce<kThreads>(largest, Larger());
  double sum = 0;
  for (int64_t c = threadIdx.x; c < classes; c += kThreads) sum += expf(x[c] - row.largest);
  row.sum = block_sum<kThreads>(sum);
  return row;
}

}  // namespace tidemark
