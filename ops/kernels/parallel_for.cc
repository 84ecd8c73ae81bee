#include "ops/kernels/parallel_for.h"

#include <omp.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/omp/execution_policy.h>

#include <algorithm>

namespace tidemark::detail {

void run_chunks(int64_t n, int64_t grain, ChunkBody call, const void* body) {
  if (n <= 0) return;
  const int64_t threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  if (threads == 1 || n <= grain) {
    call(body, 0, n);
    return;
  }
  // One range per thread, unless ranges would be shorter than half a grain. Long ranges end on
  // whole cache lines, assuming elements of 4 bytes.
  int64_t length = (n + threads - 1) / threads;
  length = std::max(length, (grain + 1) / 2);
  if (length >= 1024) length = (length + 15) / 16 * 16;
  const int64_t chunks = (n + length - 1) / length;
  thrust::for_each_n(
      thrust::omp::par, thrust::counting_iterator<int64_t>(0), chunks,
      [=](int64_t chunk) { call(body, chunk * length, std::min(n, (chunk + 1) * length)); });
}

}  // namespace tidemark::detail
