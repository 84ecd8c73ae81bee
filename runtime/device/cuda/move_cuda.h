// memmove() within device memory, where the ranges overlap and lie close together: what
// cudaMemcpyAsync leaves undefined.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tidemark {

// REQUIRES: addresses and size are multiples of 16. Takes no memory. One block moves all of it,
// so that a barrier of the block orders reads before writes: tens of gigabytes per second.
// Where the ranges are further apart, plain copies in pieces are faster.
cudaError_t move_on_gpu(void* to, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace tidemark
