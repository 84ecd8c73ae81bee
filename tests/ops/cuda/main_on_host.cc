// Runs a test of operators on the CPU device with CUDA's kernels instead of the CPU's.
#include <gtest/gtest.h>

#include "ops/register.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// All but those of cuDNN and cuBLAS.
void register_own_kernels() {
  register_accumulate_cuda();
  register_arithmetic_cuda();
  register_attention_cuda();
  register_avg_pool2d_cuda();
  register_batch_norm_cuda();
  register_compare_cuda();
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
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  using namespace tidemark;
  ::testing::InitGoogleTest(&argc, argv);
  register_own_kernels();
  for (const OpDef* op : all_operators()) {
    if (const PrepareKernel kernel = find_kernel(*op, Backend::kCuda)) {
      set_kernel(*op, Backend::kCpu, kernel);
    }
  }
  return RUN_ALL_TESTS();
}
