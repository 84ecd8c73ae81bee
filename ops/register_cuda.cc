#include "ops/register_cuda.h"

#include <mutex>

#include "ops/register.h"

namespace tidemark {

void register_cuda_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_accumulate_cuda();
    register_arithmetic_cuda();
    register_attention_cuda();
    register_avg_pool2d_cuda();
    register_batch_norm_cuda();
    register_compare_cuda();
    register_convolution_cuda();
    register_copy_cuda();
    register_create_cuda();
    register_cross_entropy_cuda();
    register_embedding_cuda();
    register_gelu_cuda();
    register_inplace_cuda();
    register_layer_norm_cuda();
    register_matmul_cuda();
    register_max_cuda();
    register_max_pool2d_cuda();
    register_norm_cuda();
    register_optimizer_cuda();
    register_random_cuda();
    register_running_stats_cuda();
    register_softmax_cuda();
    register_sum_cuda();
    register_unary_cuda();
  });
}

}  // namespace tidemark
