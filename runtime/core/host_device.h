// TIDEMARK_HOST_DEVICE marks a small function that kernels call on either side.
//
// Device code calls constexpr members of std::array, so CUDA sources that include such
// functions are compiled with --expt-relaxed-constexpr.
#pragma once

// TIDEMARK_DEVICE_CODE: in code compiled for a GPU, its compute capability times 100 (800 for
// 8.0); else 0.
#ifdef __CUDACC__
#define TIDEMARK_HOST_DEVICE __host__ __device__
#define TIDEMARK_DEVICE_CODE __CUDA_ARCH__
#else
#define TIDEMARK_HOST_DEVICE
#define TIDEMARK_DEVICE_CODE 0
#endif
