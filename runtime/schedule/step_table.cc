#include "runtime/schedule/step_table.h"

#include <algorithm>

namespace tidemark {
namespace {

bool lives_on(Category category) {
  return category == Category::kParameter || category == Category::kOptimizerState ||
         category == Category::kBuffer;
}

// The first input that dies in place and was made in the step.
uint32_t dying_input(const StepTrace& trace, uint32_t op) {
  for (const uint32_t input : trace.ops[op].may_overwrite) {
    if (dies_in_place(trace, op, input) && !trace.storages[input].at_start) return input;
  }
  return StepTable::kNone;
}

}  // namespace

bool dies_in_place(const StepTrace& trace, uint32_t op, uint32_t input) {
  const StepTrace::Op& it = trace.ops[op];
  return trace.storages[input].size == trace.storages[it.outputs.front()].size &&
         std::find(it.released.begin(), it.released.end(), input) != it.released.end();
}

StepTable::StepTable(const StepTrace& trace) {
  for (const StepTrace::Storage& storage : trace.storages) {
    items.push_back({.bytes = storage.size,
                     .may_evict = storage.may_evict,
                     .may_offload = storage.may_offload,
                     .persistent = lives_on(storage.category),
                     .at_end = storage.at_end});
  }
  std::vector<bool> seen(items.size()), ended(items.size());
  const auto come = [&](uint32_t item) -> Item& {
    if (!seen[item]) items[item].begin = static_cast<uint32_t>(calls.size());
    seen[item] = true;
    return items[item];
  };
  const auto use = [&](uint32_t item) -> Item& {
    Item& used = come(item);
    used.uses.push_back(static_cast<uint32_t>(calls.size()));
    operands_.push_back(item);
    return used;
  };
  const auto end_list = [&] { ends_.push_back(static_cast<uint32_t>(operands_.size())); };
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    const StepTrace::Op& op = trace.ops[k];
    if (op.kind == StepTrace::Kind::kUpload) {
      for (const uint32_t output : op.outputs) come(output).uploaded = true;
    } else if (op.kind == StepTrace::Kind::kCall) {
      for (const StepTrace::Input& input : op.inputs) use(input.storage);
      end_list();
      for (const uint32_t output : op.outputs) {
        use(output).producer = static_cast<uint32_t>(calls.size());
      }
      end_list();
      for (const StepTrace::Input& input : op.inputs) {
        if (!input.written) continue;
        operands_.push_back(input.storage);
        items[input.storage].may_evict = false;
      }
      end_list();
      calls.push_back(
          {k, op.signature, duration, op.cost, op.workspace, dying_input(trace, k)});
      duration += op.cost;
    }
    for (const uint32_t released : op.released) {
      come(released).end = static_cast<uint32_t>(calls.size());
      ended[released] = true;
    }
  }
  for (size_t item = 0; item < items.size(); ++item) {
    if (!ended[item]) items[item].end = static_cast<uint32_t>(calls.size());
  }
}

}  // namespace tidemark
