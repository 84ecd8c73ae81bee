#include <algorithm>
#include <cstdint>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/move_cuda.h"

namespace tidemark {
namespace {

constexpr int kThreads = 256;
constexpr int kWordsPerThread = 4;  // words of 16 bytes in flight at once
constexpr int64_t kTile = int64_t{kThreads} * kWordsPerThread;
constexpr size_t kMaxTiles = kMaxMove / (kTile * sizeof(uint4));

// Tiles go from the low end up when the data moves down, and from the high end down when it
// moves up. A block takes the next tile when it starts, reads it, marks it as read, and writes
// it once the `reach` tiles before it, which it may overwrite, are marked too. Blocks that
// started earlier hold those tiles, and they mark them without waiting for anyone. A mark is
// the number of the move, so marks of earlier moves do not count.
// progress: the next tile; the mark of each.
__global__ void __launch_bounds__(kThreads)
    move_words(uint4* to, const uint4* from, int64_t words, bool upwards, int reach,
               uint32_t* progress, uint32_t move) {
  __shared__ int taken;
  if (threadIdx.x == 0) {
    taken = static_cast<int>(atomicAdd(progress, 1U));
    if (taken + 1 == static_cast<int>(gridDim.x)) *progress = 0;  // for the next move
  }
  __syncthreads();
  const int tile = taken, tiles = static_cast<int>(gridDim.x);
  volatile uint32_t* const marks = progress + 1;
  const int64_t start = (upwards ? tiles - 1 - tile : tile) * kTile + threadIdx.x;
  uint4 held[kWordsPerThread];
#pragma unroll
  for (int k = 0; k < kWordsPerThread; ++k) {
    const int64_t at = start + k * kThreads;
    if (at < words) held[k] = from[at];
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();  // the mark is after what the others have read too
    marks[tile] = move;
  }
  const int first = max(0, tile - reach);
  for (int before = first + static_cast<int>(threadIdx.x); before < tile; before += kThreads) {
    while (marks[before] != move) {
    }
  }
  __threadfence();
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kWordsPerThread; ++k) {
    const int64_t at = start + k * kThreads;
    if (at < words) to[at] = held[k];
  }
}

}  // namespace

const size_t kMoveProgressBytes = (1 + kMaxTiles) * sizeof(uint32_t);

cudaError_t load_move() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, move_words);
}

cudaError_t move_on_gpu(void* to, const void* from, size_t bytes, MoveProgress& progress,
                        cudaStream_t stream) {
  if (bytes > kMaxMove) return cudaErrorInvalidValue;
  const auto words = static_cast<int64_t>(bytes / sizeof(uint4));
  if (words == 0) return cudaSuccess;
  auto* const target = static_cast<uint4*>(to);
  const auto* const source = static_cast<const uint4*>(from);
  const bool upwards = target > source;
  const int64_t distance = upwards ? target - source : source - target;
  const int64_t tiles = (words + kTile - 1) / kTile;
  const int64_t reach = std::min(tiles, (distance + kTile - 1) / kTile);
  move_words<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(
      target, source, words, upwards, static_cast<int>(reach), progress.words,
      ++progress.moves);
  return cudaGetLastError();
}

}  // namespace tidemark
