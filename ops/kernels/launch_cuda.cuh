// One-dimensional kernel launches.
#pragma once

#include <cuda_runtime.h>

#include "ops/registry/op.h"
#include "runtime/device/cuda/check.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/launches.h"

namespace tidemark {

inline constexpr int kLaunchThreads = 256;

// This thread's index among all threads of a launch().
__device__ inline int64_t thread_index() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

// Launches kernel(arguments...) on `blocks` blocks of `threads` threads, with `shared` bytes of
// shared memory besides what the kernel declares; no launch if `blocks` is 0.
template <class... Parameter, class... Argument>
void launch_blocks_with(const KernelArgs& args, int64_t blocks, int threads, size_t shared,
                        void (*kernel)(Parameter...), const Argument&... arguments) {
  if (blocks == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = CudaContext::stream(args.native_stream);
  use_kernel(reinterpret_cast<const void*>(kernel));
  count_launches(1);
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), "cudaLaunchKernelEx");
}

// The same without more shared memory.
template <class... Parameter, class... Argument>
void launch_blocks(const KernelArgs& args, int64_t blocks, int threads,
                   void (*kernel)(Parameter...), const Argument&... arguments) {
  launch_blocks_with(args, blocks, threads, 0, kernel, arguments...);
}

// The same with one thread for each of n work items; the last block may have idle threads.
template <class... Parameter, class... Argument>
void launch(const KernelArgs& args, int64_t n, void (*kernel)(Parameter...),
            const Argument&... arguments) {
  launch_blocks(args, (n + kLaunchThreads - 1) / kLaunchThreads, kLaunchThreads, kernel,
                arguments...);
}

// Sets `bytes` of device memory to zero.
inline void launch_clear(const KernelArgs& args, void* to, Bytes bytes) {
  count_launches(1);
  TIDEMARK_CUDA_CALL(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes.count()),
                                     CudaContext::stream(args.native_stream)));
}

}  // namespace tidemark
