// Convolution kernels by name, for n spatial dimensions, 2 or 3.
#pragma once

#include <cstddef>

#include "ops/registry/op.h"

namespace tidemark {

// oneDNN.
template <size_t n>
PreparedKernel prepare_conv_cpu(const OpQuery& query);
template <size_t n>
PreparedKernel prepare_conv_grad_input_cpu(const OpQuery& query);
template <size_t n>
PreparedKernel prepare_conv_grad_weight_cpu(const OpQuery& query);

}  // namespace tidemark
