// Convolution kernels by name, for n spatial dimensions, 2 or 3.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ops/registry/op.h"

namespace tidemark {

// oneDNN.
template <size_t n>
PreparedKernel prepare_conv_cpu(const OpQuery& query);
template <size_t n>
PreparedKernel prepare_conv_grad_input_cpu(const OpQuery& query);
template <size_t n>
PreparedKernel prepare_conv_grad_weight_cpu(const OpQuery& query);

// Output 0 += input 2, channel by channel: a forward pass's bias on CUDA. Returns what to run.
std::function<void(const KernelArgs&)> prepare_add_bias_cuda(const OpQuery& query);

// oneDNN's other implementations: "jit:avx2", "x64:gemm:jit", "ref:any".
template <size_t n>
std::vector<std::string> conv_algorithms_cpu(const OpQuery& query);
template <size_t n>
std::vector<std::string> conv_grad_input_algorithms_cpu(const OpQuery& query);
template <size_t n>
std::vector<std::string> conv_grad_weight_algorithms_cpu(const OpQuery& query);

}  // namespace tidemark
