// The family's kernels and attributes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/registry/op.h"

namespace tidemark::reduce {

struct SumAttrs {
  int64_t dims;    // bit d: dimension d is summed over
  int64_t keep;    // 1: summed dimensions stay, with extent 1
  int64_t to = 0;  // DType of y
};

struct MaxGradAttrs {
  int64_t extent;  // of the last dimension of x
};

PreparedKernel prepare_sum_cpu(const OpQuery& query);
PreparedKernel prepare_max_cpu(const OpQuery& query);
PreparedKernel prepare_max_grad_cpu(const OpQuery& query);
PreparedKernel prepare_argmax_cpu(const OpQuery& query);
PreparedKernel prepare_accuracy_count_cpu(const OpQuery& query);

inline constexpr size_t kMaxNorms = 32;  // tensors per norm, norms per join_norms
PreparedKernel prepare_norm_cpu(const OpQuery& query);
void join_norms_cpu(const KernelArgs& args);

}  // namespace tidemark::reduce
