#include "ops/register_cuda.h"

#include <mutex>

#include "ops/register.h"

namespace tidemark {

void register_cuda_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
#define TIDEMARK_CUDA_KERNELS(stem) register_##stem##_cuda();
#define TIDEMARK_CUDNN_KERNELS(stem) register_##stem##_cuda();
#include "ops/operators.inc"
  });
}

}  // namespace tidemark
