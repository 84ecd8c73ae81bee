// What elementwise functors ask of a GPU, as VectorMath (vector_math.h) for CPU loops.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace tidemark {

struct DeviceMath {
  static __device__ float exp_negative(float x) { return expf(x); }
  // 1 / (1 + e^-x)
  static __device__ float logistic(float x) { return 1 / (1 + expf(-x)); }
};

}  // namespace tidemark
