// The CUDA kernels of each file that has some, added to the table of kernels; called by
// register_cuda_kernels().
#pragma once

namespace tidemark {

#define TIDEMARK_CUDA_KERNELS(stem) void register_##stem##_cuda();
#define TIDEMARK_CUDNN_KERNELS(stem) void register_##stem##_cuda();
#include "ops/operators.inc"

}  // namespace tidemark
