#include <string>

#include "ops/kernels/signature.h"
#include "ops/optimizer/compact.h"
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

template <const OpDef* op, class Kind>
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
  const DType type = query.inputs[kParam].dtype;
  constexpr bool kMaster = Kind::kHasMaster, kEightBit = Kind::kEightBit;
  for (size_t p = 0; p < query.inputs.size(); p += group) {
    const Shape& shape = query.inputs[p].shape;
    require_dtype(query, op->name, p, kEightBit && !kMaster ? type : DType::kBFloat16);
    require_floats(query, op->name, p, 1);
    require_like(op->name, query, p + kGrad, require_floats(query, op->name, p + kGrad, 1),
                 shape);
    for (size_t i = 0; i < Kind::kStates; ++i) {
      require_like(op->name, query, p + kState + i, kEightBit ? DType::kUInt8 : DType::kFloat32,
                   shape);
      if constexpr (kEightBit) {
        require_like(op->name, query, p + Kind::kScale + i, DType::kFloat32,
                     {adam_scales(shape.elements())});
      }
    }
    if constexpr (kMaster) {
      require_like(op->name, query, p + Kind::kMaster, DType::kFloat32, shape);
    }
  }
  require(kMaster || type == DType::kFloat32 || query.inputs.size() == group, op->name,
          "parameters that are rounded at random are updated one by one");
  return {};
}

template <const OpDef* self, int flops, class Rule, bool master, bool eight_bit>
constexpr OpDef compact_op(const char* name) {
  using Kind = CompactKind<Rule, BFloat16, master, eight_bit>;
  return {.name = name,
          .infer = infer_compact<self, Kind>,
          .cost = optimizer::step_cost<self, flops>,
          .written_inputs = ((1U << Kind::kInputs) - 1) & ~(1U << kGrad),
          .input_group = Kind::kInputs,
          .prepare = {optimizer::prepare_compact_cpu<Rule, master, eight_bit>}};
}

}  // namespace

int64_t adam_scales(int64_t elements) {
  return (elements + kQuantisedBlock - 1) / kQuantisedBlock;
}

// An 8-bit number's code, and its value, take about 16 operations each.
const OpDef kAdamBfloat16Step =
    compact_op<&kAdamBfloat16Step, 16, AdamRule, false, false>("adam_bfloat16_step_");
const OpDef kAdamMasterStep =
    compact_op<&kAdamMasterStep, 16, AdamRule, true, false>("adam_master_step_");
const OpDef kAdam8bitStep =
    compact_op<&kAdam8bitStep, 80, AdamRule, false, true>("adam_8bit_step_");
const OpDef kAdam8bitMasterStep =
    compact_op<&kAdam8bitMasterStep, 80, AdamRule, true, true>("adam_8bit_master_step_");
const OpDef kSgdMasterStep =
    compact_op<&kSgdMasterStep, 4, SgdRule<false>, true, false>("sgd_master_step_");
const OpDef kSgdMomentumMasterStep =
    compact_op<&kSgdMomentumMasterStep, 7, SgdRule<true>, true, false>(
        "sgd_momentum_master_step_");

}  // namespace tidemark
