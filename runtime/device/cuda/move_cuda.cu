#include <cstdint>

#include "runtime/device/cuda/move_cuda.h"

namespace tidemark {
namespace {

constexpr int kThreads = 1024;
constexpr int kWordsPerThread = 4;  // words of 16 bytes in flight at once
constexpr int64_t kTile = int64_t{kThreads} * kWordsPerThread;

// Tiles go from the low end up when the data moves down, and from the high end down when it
// moves up. A tile is read completely before it is written, and the bytes that it overwrites
// beyond itself have been read by earlier tiles.
__global__ void __launch_bounds__(kThreads)
    move_words(uint4* to, const uint4* from, int64_t words, bool upwards) {
  const int64_t tiles = (words + kTile - 1) / kTile;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t start = (upwards ? tiles - 1 - i : i) * kTile + threadIdx.x;
    uint4 held[kWordsPerThread];
#pragma unroll
    for (int k = 0; k < kWordsPerThread; ++k) {
      const int64_t at = start + k * kThreads;
      if (at < words) held[k] = from[at];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kWordsPerThread; ++k) {
      const int64_t at = start + k * kThreads;
      if (at < words) to[at] = held[k];
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t move_on_gpu(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const auto words = static_cast<int64_t>(bytes / sizeof(uint4));
  if (words == 0) return cudaSuccess;
  move_words<<<1, kThreads, 0, stream>>>(static_cast<uint4*>(to),
                                         static_cast<const uint4*>(from), words, to > from);
  return cudaGetLastError();
}

}  // namespace tidemark
