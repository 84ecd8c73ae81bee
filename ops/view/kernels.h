// The family's kernels and attributes.
#pragma once

#include <cstdint>

#include "ops/registry/op.h"

namespace tidemark::view {

struct NarrowGradAttrs {
  int64_t dimension;
  int64_t start;
  int64_t extent;  // of the dimension in x
};

struct ConcatAttrs {
  int64_t dimension;
};

PreparedKernel prepare_narrow_grad_cpu(const OpQuery& query);
PreparedKernel prepare_copy_cpu(const OpQuery& query);
PreparedKernel prepare_concat_cpu(const OpQuery& query);

}  // namespace tidemark::view
