// The family's kernels.
#pragma once

#include "ops/registry/op.h"

namespace tidemark::optimizer {

PreparedKernel prepare_sgd_cpu(const OpQuery& query);
PreparedKernel prepare_sgd_momentum_cpu(const OpQuery& query);
PreparedKernel prepare_adam_cpu(const OpQuery& query);
PreparedKernel prepare_clip_cpu(const OpQuery& query);
template <bool master, bool eight_bit>
PreparedKernel prepare_compact_adam_cpu(const OpQuery& query);

}  // namespace tidemark::optimizer
