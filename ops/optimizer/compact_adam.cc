#include <string>

#include "ops/kernels/signature.h"
#include "ops/optimizer/compact_adam.h"
#include "ops/optimizer/dynamic_map.h"
#include "ops/optimizer/kernels.h"
#include "ops/optimizer/optimizer.h"

namespace tidemark {
namespace {

void require_like(const char* op, const OpQuery& query, size_t i, DType dtype,
                  const Shape& shape) {
  require_dtype(query, op, i, dtype);
  if (query.inputs[i].shape == shape) return;
  fail(op, "input " + std::to_string(i) + " has shape " + query.inputs[i].shape.to_string() +
               ", not " + shape.to_string());
}

template <const OpDef* op, bool master, bool eight_bit>
std::vector<TensorMeta> infer_compact(const OpQuery& query) {
  const size_t group = op->input_group;
  if (query.inputs.empty() || query.inputs.size() % group != 0) {
    fail(op->name, std::to_string(query.inputs.size()) + " inputs, not " +
                       std::to_string(group) + " for each parameter");
  }
  for (const TensorMeta& input : query.inputs) {
    require(input.is_contiguous(), op->name,
            "parameters, gradients and state must be contiguous");
  }
  const DType type = query.inputs[kAdamParam].dtype;
  for (size_t p = 0; p < query.inputs.size(); p += group) {
    const Shape& shape = query.inputs[p].shape;
    require_dtype(query, op->name, p, eight_bit && !master ? type : DType::kBFloat16);
    require_floats(query, op->name, p, 1);
    require_like(op->name, query, p + kAdamGrad,
                 require_floats(query, op->name, p + kAdamGrad, 1), shape);
    const DType state = eight_bit ? DType::kUInt8 : DType::kFloat32;
    require_like(op->name, query, p + kAdamM, state, shape);
    require_like(op->name, query, p + kAdamV, state, shape);
    if constexpr (eight_bit) {
      const Shape scales{adam_scales(shape.elements())};
      require_like(op->name, query, p + kAdamMScale, DType::kFloat32, scales);
      require_like(op->name, query, p + kAdamVScale, DType::kFloat32, scales);
    }
    if constexpr (master) {
      require_like(op->name, query, p + group - 1, DType::kFloat32, shape);
    }
  }
  require(master || type == DType::kFloat32 || query.inputs.size() == group, op->name,
          "parameters that are rounded at random are updated one by one");
  return {};
}

// 16 operations are the step's; a number's code, and its value, take about 16 each.
template <const OpDef* op, bool eight_bit>
OpCost compact_cost(const OpQuery& query) {
  OpCost cost = updating_cost(*op, query, 0);
  for (size_t i = 0; i < query.inputs.size(); i += op->input_group) {
    cost.flops += (eight_bit ? 80 : 16) * static_cast<double>(query.inputs[i].shape.elements());
  }
  return cost;
}

template <const OpDef* self, bool master, bool eight_bit>
constexpr OpDef compact_op(const char* name, PrepareKernel cpu) {
  constexpr uint32_t kGroup = CompactKind<BFloat16, master, eight_bit>::kInputs;
  return {.name = name,
          .infer = infer_compact<self, master, eight_bit>,
          .cost = compact_cost<self, eight_bit>,
          .written_inputs = ((1U << kGroup) - 1) & ~(1U << kAdamGrad),
          .input_group = kGroup,
          .prepare = {cpu}};
}

}  // namespace

int64_t adam_scales(int64_t elements) {
  return (elements + kQuantisedBlock - 1) / kQuantisedBlock;
}

const OpDef kAdamBfloat16Step = compact_op<&kAdamBfloat16Step, false, false>(
    "adam_bfloat16_step_", optimizer::prepare_compact_adam_cpu<false, false>);
const OpDef kAdamMasterStep = compact_op<&kAdamMasterStep, true, false>(
    "adam_master_step_", optimizer::prepare_compact_adam_cpu<true, false>);
const OpDef kAdam8bitStep = compact_op<&kAdam8bitStep, false, true>(
    "adam_8bit_step_", optimizer::prepare_compact_adam_cpu<false, true>);
const OpDef kAdam8bitMasterStep = compact_op<&kAdam8bitMasterStep, true, true>(
    "adam_8bit_master_step_", optimizer::prepare_compact_adam_cpu<true, true>);

}  // namespace tidemark
