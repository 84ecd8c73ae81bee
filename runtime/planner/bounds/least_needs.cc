#include "runtime/planner/bounds/least_needs.h"

#include <algorithm>

namespace tidemark::planner {
namespace {

void take_least(StepTrace::Op& op, const StepTrace::Variant& variant) {
  std::erase_if(op.inputs, [&](const StepTrace::Input& input) {
    return std::find(variant.inputs.begin(), variant.inputs.end(), input) ==
           variant.inputs.end();
  });
  op.may_overwrite.insert(op.may_overwrite.end(), variant.may_overwrite.begin(),
                          variant.may_overwrite.end());
  op.workspace = std::min(op.workspace, variant.workspace);
  op.cost = std::min(op.cost, variant.cost);
}

}  // namespace

StepTrace with_least_needs(StepTrace trace) {
  for (StepTrace::Op& op : trace.ops) {
    if (op.variants.empty()) continue;
    for (const StepTrace::Variant& variant : op.variants) take_least(op, variant);
    op.variants.clear();
    std::vector<uint32_t>& over = op.may_overwrite;
    std::sort(over.begin(), over.end());
    over.erase(std::unique(over.begin(), over.end()), over.end());
    std::erase_if(over, [&](uint32_t storage) {
      return std::none_of(
          op.inputs.begin(), op.inputs.end(),
          [&](const StepTrace::Input& input) { return input.storage == storage; });
    });
  }
  return trace;
}

}  // namespace tidemark::planner
