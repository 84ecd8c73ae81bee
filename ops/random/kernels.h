// The family's kernels and attributes.
#pragma once

#include <cstdint>

#include "ops/kernels/signature.h"

namespace tidemark::random {

struct RandomAttrs {
  ShapeAttrs shape;
  int64_t seed;
};

struct DropoutAttrs {
  double p;
  int64_t seed;
};

PreparedKernel prepare_uniform_cpu(const OpQuery& query);
PreparedKernel prepare_normal_cpu(const OpQuery& query);
PreparedKernel prepare_dropout_cpu(const OpQuery& query);

}  // namespace tidemark::random
