// The part of CUDA that Tidemark's own kernels use, on the host. Kernel sources are compiled as
// plain C++ against this folder's headers. Blocks run one after the other; each thread that
// waits has a fiber.
//
// This finds wrong arithmetic, wrong indices and missing barriers (threads leave a barrier
// alternately first to last and last to first) on machines without a GPU or CUDA. It says
// nothing about speed, memory models, cuDNN or cuBLAS.
//
// Threads: any; launches run one after the other.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <typeinfo>

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

// All threads of the block must call it: the program ends if one of them has returned.
void __syncthreads();
// Here all threads of the block must call it, not just a warp: all warps must reach it alike.
float __shfl_xor_sync(unsigned lanes, float value, int distance);
inline int __shfl_xor_sync(unsigned lanes, int value, int distance) {
  return std::bit_cast<int>(__shfl_xor_sync(lanes, std::bit_cast<float>(value), distance));
}

// The types of kernels' parameters, by the compiler's names, with their bytes on the host. All
// that are launched anywhere in the program are there when main() begins.
std::multimap<std::string, size_t>& cuda_on_host_parameters();

namespace tidemark::cuda_on_host {

template <class... Parameter>
inline const bool kNoted = [] {
  (cuda_on_host_parameters().emplace(typeid(Parameter).name(), sizeof(Parameter)), ...);
  return true;
}();

}  // namespace tidemark::cuda_on_host

template <class... Parameter, class... Argument>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameter...),
                               const Argument&... arguments) {
  (void)tidemark::cuda_on_host::kNoted<Parameter...>;
  cuda_on_host_run(*config, [&] { kernel(arguments...); });
  return cudaSuccess;
}

using std::max;
using std::min;
inline float __frcp_rn(float x) { return 1 / x; }
inline void atomicAdd(unsigned long long* to, unsigned long long more) { *to += more; }
