// The family's kernels and attributes.
#pragma once

#include <cstdint>

#include "ops/registry/op.h"

namespace tidemark::loss {

struct NllLossGradAttrs {
  int64_t classes;
};

// Attributes of cross entropy and its gradient.
struct CrossEntropyAttrs {
  int64_t ignores = 0;  // 1: rows with the label `ignored` do not count
  int64_t ignored = 0;
};

// The values that cross entropy saves for a row x. The probability of class c is then e^(x[c] -
// largest) * inverse.
struct RowSums {
  float largest;  // max x
  float inverse;  // 1 / sum e^(x - largest)
};

PreparedKernel prepare_softmax_cpu(const OpQuery& query);
PreparedKernel prepare_softmax_grad_cpu(const OpQuery& query);
PreparedKernel prepare_log_softmax_cpu(const OpQuery& query);
PreparedKernel prepare_log_softmax_grad_cpu(const OpQuery& query);
PreparedKernel prepare_nll_loss_cpu(const OpQuery& query);
PreparedKernel prepare_nll_loss_grad_cpu(const OpQuery& query);
PreparedKernel prepare_cross_entropy_cpu(const OpQuery& query);
PreparedKernel prepare_cross_entropy_grad_cpu(const OpQuery& query);

}  // namespace tidemark::loss
