// memmove() within device memory, for overlapping ranges at a small distance, which
// cudaMemcpyAsync leaves undefined.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tidemark {

// Uses no extra memory. One block moves all bytes, so that a block-wide barrier orders reads
// before writes: tens of gigabytes per second. At larger distances, plain copies in pieces are
// faster. REQUIRES: addresses and size are multiples of 16.
cudaError_t move_on_gpu(void* to, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace tidemark
