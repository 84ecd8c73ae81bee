// One function per file of CUDA kernels; each adds that file's kernels to the kernel table.
// register_cuda_kernels() calls them all.
#pragma once

namespace tidemark {

#define TIDEMARK_CUDA_KERNELS(stem) void register_##stem##_cuda();
#define TIDEMARK_CUDNN_KERNELS(stem) void register_##stem##_cuda();
#include "ops/operators.inc"

}  // namespace tidemark
