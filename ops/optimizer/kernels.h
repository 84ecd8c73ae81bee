// The family's kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/kernels/signature.h"
#include "ops/registry/op.h"

namespace tidemark::optimizer {

// The elements of each parameter of a call that takes `inputs` tensors for each.
inline std::vector<int64_t> elements_of_members(const OpQuery& query, size_t inputs) {
  std::vector<int64_t> elements;
  for (size_t i = 0; i < query.inputs.size(); i += inputs) {
    elements.push_back(query.inputs[i].shape.elements());
  }
  return elements;
}

// Of the operator `op`: so many operations for each element of its parameters.
template <const OpDef* op, int flops>
OpCost step_cost(const OpQuery& query) {
  OpCost cost = updating_cost(*op, query, 0);
  for (const int64_t elements : elements_of_members(query, op->input_group)) {
    cost.flops += flops * static_cast<double>(elements);
  }
  return cost;
}

PreparedKernel prepare_sgd_cpu(const OpQuery& query);
PreparedKernel prepare_sgd_momentum_cpu(const OpQuery& query);
PreparedKernel prepare_adam_cpu(const OpQuery& query);
PreparedKernel prepare_clip_cpu(const OpQuery& query);
// Rule: AdamRule or SgdRule (functors.h).
template <class Rule, bool master, bool eight_bit>
PreparedKernel prepare_compact_cpu(const OpQuery& query);

}  // namespace tidemark::optimizer
