// The CUDA kernels of each stem, added to the table of kernels; called by
// register_cuda_kernels().
#pragma once

namespace tidemark {

void register_accumulate_cuda();
void register_arithmetic_cuda();
void register_attention_cuda();
void register_avg_pool2d_cuda();
void register_batch_norm_cuda();
void register_compare_cuda();
void register_convolution_cuda();
void register_copy_cuda();
void register_create_cuda();
void register_cross_entropy_cuda();
void register_embedding_cuda();
void register_gelu_cuda();
void register_inplace_cuda();
void register_layer_norm_cuda();
void register_matmul_cuda();
void register_max_cuda();
void register_max_pool2d_cuda();
void register_norm_cuda();
void register_optimizer_cuda();
void register_random_cuda();
void register_running_stats_cuda();
void register_softmax_cuda();
void register_sum_cuda();
void register_unary_cuda();

}  // namespace tidemark
