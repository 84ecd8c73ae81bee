// See cuda_runtime.h.
#pragma once

#include <cstddef>
#include <cstring>

enum cudaError_t { cudaSuccess };
using cudaStream_t = void*;

inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  if (bytes > 0) std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
