// See cuda_runtime.h. As with CUB, the result is in thread 0.
#pragma once

#include <cuda_runtime.h>

namespace cub {

template <class T, int kThreads>
class BlockReduce {
 public:
  struct TempStorage {
    T values[kThreads];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <class Op>
  T Reduce(const T& value, const Op& op) {
    storage_.values[threadIdx.x] = value;
    __syncthreads();
    T total = storage_.values[0];
    for (int i = 1; threadIdx.x == 0 && i < kThreads; ++i)
      total = op(total, storage_.values[i]);
    return total;
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
