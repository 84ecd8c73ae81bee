// The family's kernels and attributes.
#pragma once

#include <cstdint>

#include "ops/kernels/signature.h"

namespace tidemark::create {

struct FillAttrs {
  ShapeAttrs shape;
  int64_t dtype;
};

struct ArangeAttrs {
  int64_t count;
};

PreparedKernel prepare_fill_cpu(const OpQuery& query);
void arange_cpu(const KernelArgs& args);

}  // namespace tidemark::create
