// As much of CUDA as Tidemark's own kernels use, on the host: their sources, compiled as plain
// C++ against the headers of this folder, run block after block, a fiber for each thread that
// waits.
//
// It finds wrong arithmetic, indices and missing barriers (threads go on from a barrier in turn
// first to last and last to first), on machines without a GPU or CUDA. It says nothing of
// speed, of memory models, nor of cuDNN and cuBLAS.
//
// Threads: any; launches are run one after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include <cuda_runtime_api.h>

#define __host__
#define __device__
#define __global__
#define __shared__ static  // blocks do not run at the same time
#define __grid_constant__
#define __launch_bounds__(...)

struct dim3 {
  dim3(unsigned extent = 1) : x(extent) {}  // NOLINT: as CUDA has it
  unsigned x, y = 1, z = 1;
};
extern dim3 blockIdx, blockDim, threadIdx;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

void cuda_on_host_run(const cudaLaunchConfig_t& config, const std::function<void()>& kernel);

// Of all threads of the block: ends the program if one of them has returned.
void __syncthreads();
// Here of all threads of the block, not of a warp alone: all warps must come to it alike.
float __shfl_xor_sync(unsigned lanes, float value, int distance);

template <class... Parameter, class... Argument>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameter...),
                               const Argument&... arguments) {
  cuda_on_host_run(*config, [&] { kernel(arguments...); });
  return cudaSuccess;
}

using std::min;
inline float __frcp_rn(float x) { return 1 / x; }
inline void atomicAdd(unsigned long long* to, unsigned long long more) { *to += more; }
