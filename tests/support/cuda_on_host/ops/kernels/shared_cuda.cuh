// ops/kernels/shared_cuda.cuh on the host: blocks do not run at the same time.
#pragma once

#include "ops/kernels/launch_cuda.cuh"

namespace tidemark {

template <class T>
T& block_shared() {
  static T memory;
  return memory;
}

template <class T, class... Parameter, class... Argument>
void launch_sharing(const KernelArgs& args, int64_t blocks, int threads,
                    void (*kernel)(Parameter...), const Argument&... arguments) {
  launch_blocks(args, blocks, threads, kernel, arguments...);
}

}  // namespace tidemark
