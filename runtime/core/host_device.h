// TIDEMARK_HOST_DEVICE marks a small function that kernels call on either side.
//
// Device code calls constexpr members of std::array, so CUDA sources that include such
// functions are compiled with --expt-relaxed-constexpr.
#pragma once

#ifdef __CUDACC__
#define TIDEMARK_HOST_DEVICE __host__ __device__
#else
#define TIDEMARK_HOST_DEVICE
#endif
