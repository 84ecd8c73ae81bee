// A block's shared memory, if it may be more than the 48 KiB that every kernel has.
#pragma once

#include "ops/kernels/launch_cuda.cuh"
#include "runtime/device/cuda/launches.h"

namespace tidemark {

inline constexpr size_t kEveryKernelShares = 48 << 10;

// The bytes that a launch adds for a T.
template <class T>
inline constexpr size_t kAddedShared = sizeof(T) > kEveryKernelShares ? sizeof(T) : 0;

// One T for the whole block. If it is large, the kernel is launched by launch_sharing<T>() and
// has no other large one. T is not initialised.
template <class T>
__device__ T& block_shared() {
  if constexpr (kAddedShared<T> == 0) {
    __shared__ T memory;
    return memory;
  } else {
    // For scripts/kernel_resources.py.
    asm volatile("// launched with %0 more bytes of shared memory" : : "n"(kAddedShared<T>));
    extern __shared__ uint4 added_shared[];
    return *reinterpret_cast<T*>(added_shared);
  }
}

// launch_blocks() of a kernel that calls block_shared<T>().
template <class T, class... Parameter, class... Argument>
void launch_sharing(const KernelArgs& args, int64_t blocks, int threads,
                    void (*kernel)(Parameter...), const Argument&... arguments) {
  constexpr size_t kBytes = kAddedShared<T>;
  if constexpr (kBytes > 0) {
    use_kernel(reinterpret_cast<const void*>(kernel));
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kBytes)),
               "cudaFuncSetAttribute");
  }
  launch_blocks_with(args, blocks, threads, kBytes, kernel, arguments...);
}

}  // namespace tidemark
