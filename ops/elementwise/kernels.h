// Elementwise kernels that have source files of their own, by name.
#pragma once

#include "ops/registry/op.h"

namespace tidemark::elementwise {

PreparedKernel prepare_gelu_cpu(const OpQuery& query);
PreparedKernel prepare_gelu_grad_cpu(const OpQuery& query);
PreparedKernel prepare_relu_cpu(const OpQuery& query);
PreparedKernel prepare_relu_grad_cpu(const OpQuery& query);
PreparedKernel prepare_silu_cpu(const OpQuery& query);
PreparedKernel prepare_silu_grad_cpu(const OpQuery& query);
PreparedKernel prepare_silu_mul_cpu(const OpQuery& query);
PreparedKernel prepare_silu_mul_grad_cpu(const OpQuery& query);

}  // namespace tidemark::elementwise
