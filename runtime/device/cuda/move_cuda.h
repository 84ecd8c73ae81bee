// memmove() within device memory, for ranges that overlap, which cudaMemcpyAsync leaves
// undefined.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tidemark {

// Device memory through which the blocks of a move wait for each other. Moves in one stream
// share it; streams do not.
struct MoveProgress {
  uint32_t* words = nullptr;  // kMoveProgressBytes, zero before the first move
  uint32_t moves = 0;         // launches so far
};
extern const size_t kMoveProgressBytes;

// Loads the code, which CUDA otherwise does at the first move.
cudaError_t load_move();

// One launch. Many blocks move a tile each, and no byte is overwritten before it has been read.
// REQUIRES: addresses and size are multiples of 16; bytes <= kMaxMove (driver.h).
cudaError_t move_on_gpu(void* to, const void* from, size_t bytes, MoveProgress& progress,
                        cudaStream_t stream);

}  // namespace tidemark
