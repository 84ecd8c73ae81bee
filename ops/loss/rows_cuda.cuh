// Reductions over a row that softmax, its logarithm and cross entropy start with.
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

// Every thread of the block gets the result. Reads x once, four elements at a time. Each thread
// scales its sum by the largest value seen so far (Milakov and Gimelshein, 2018) and rescales
// it when that value grows. -infinity adds nothing and also stands for elements past the end.
// NaN, +infinity, or a row of -infinity alone makes the sum NaN.
template <int kThreads, class T>
__device__ RowMoments row_moments(const T* x, int64_t classes) {
  constexpr int kEach = 4;
  float largest = -INFINITY;
  double sum = 0;
  for (int64_t first = threadIdx.x; first < classes; first += kEach * kThreads) {
    float values[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t c = first + i * kThreads;
      values[i] = c < classes ? float{x[c]} : -INFINITY;
    }
    float grown = largest;
#pragma unroll
    for (int i = 0; i < kEach; ++i) grown = Larger()(grown, values[i]);
    if (grown > largest) {
      sum *= expf(largest - grown);
      largest = grown;
    }
    const float shift = largest > -INFINITY ? largest : 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += expf(values[i] - shift);
  }
  RowMoments row;
  row.largest = block_reduce<kThreads>(largest, Larger());
  row.sum = block_sum<kThreads>(sum * expf(largest - row.largest));
  return row;
}

}  // namespace tidemark
