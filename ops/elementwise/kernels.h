// The family's kernels, by name; elsewhere they are known by their OpDef.
#pragma once

#include "ops/registry/op.h"

namespace tidemark::elementwise {

PreparedKernel prepare_add_cpu(const OpQuery& query);
PreparedKernel prepare_sub_cpu(const OpQuery& query);
PreparedKernel prepare_mul_cpu(const OpQuery& query);
PreparedKernel prepare_div_cpu(const OpQuery& query);
PreparedKernel prepare_div_grad_cpu(const OpQuery& query);
PreparedKernel prepare_add_scaled_cpu(const OpQuery& query);

PreparedKernel prepare_scale_cpu(const OpQuery& query);
PreparedKernel prepare_neg_cpu(const OpQuery& query);
PreparedKernel prepare_abs_cpu(const OpQuery& query);
PreparedKernel prepare_abs_grad_cpu(const OpQuery& query);
PreparedKernel prepare_relu_cpu(const OpQuery& query);
PreparedKernel prepare_relu_grad_cpu(const OpQuery& query);
PreparedKernel prepare_exp_cpu(const OpQuery& query);
PreparedKernel prepare_log_cpu(const OpQuery& query);
PreparedKernel prepare_sqrt_cpu(const OpQuery& query);
PreparedKernel prepare_sqrt_grad_cpu(const OpQuery& query);
PreparedKernel prepare_tanh_cpu(const OpQuery& query);
PreparedKernel prepare_tanh_grad_cpu(const OpQuery& query);
PreparedKernel prepare_sigmoid_cpu(const OpQuery& query);
PreparedKernel prepare_sigmoid_grad_cpu(const OpQuery& query);
PreparedKernel prepare_relu6_cpu(const OpQuery& query);
PreparedKernel prepare_relu6_grad_cpu(const OpQuery& query);
PreparedKernel prepare_silu_cpu(const OpQuery& query);
PreparedKernel prepare_silu_grad_cpu(const OpQuery& query);

PreparedKernel prepare_gelu_cpu(const OpQuery& query);
PreparedKernel prepare_gelu_grad_cpu(const OpQuery& query);

PreparedKernel prepare_eq_cpu(const OpQuery& query);
PreparedKernel prepare_gt_cpu(const OpQuery& query);
PreparedKernel prepare_where_cpu(const OpQuery& query);
PreparedKernel prepare_where_grad_cpu(const OpQuery& query);
PreparedKernel prepare_where_other_grad_cpu(const OpQuery& query);
PreparedKernel prepare_cast_cpu(const OpQuery& query);

PreparedKernel prepare_add_in_place_cpu(const OpQuery& query);
PreparedKernel prepare_mul_in_place_cpu(const OpQuery& query);
PreparedKernel prepare_copy_in_place_cpu(const OpQuery& query);
PreparedKernel prepare_fill_in_place_cpu(const OpQuery& query);

}  // namespace tidemark::elementwise
