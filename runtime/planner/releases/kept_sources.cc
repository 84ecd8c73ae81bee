#include "runtime/planner/releases/kept_sources.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tidemark::planner {
namespace {

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

bool is_pure(const StepTrace::Op& op) {
  return op.kind == StepTrace::Kind::kCall &&
         std::none_of(op.inputs.begin(), op.inputs.end(),
                      [](const StepTrace::Input& input) { return input.written; });
}

}  // namespace

StepTrace with_kept_sources(StepTrace trace) {
  const size_t count = trace.storages.size();
  std::vector<uint32_t> released(count, kNever);  // by the program, after that operator
  std::vector<bool> has_recipe(count, false);
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    for (const uint32_t storage : trace.ops[k].released) released[storage] = k;
    // A storage that is written in place cannot be recomputed any more.
    for (const StepTrace::Input& input : trace.ops[k].inputs) {
      if (input.written) has_recipe[input.storage] = false;
    }
    if (!is_pure(trace.ops[k])) continue;
    for (const uint32_t output : trace.ops[k].outputs) has_recipe[output] = true;
  }
  std::vector<uint32_t> written(count, kNever);  // next, from the operator at hand on
  std::vector<uint32_t> read_until(count, 0);    // by recipes
  for (auto k = static_cast<uint32_t>(trace.ops.size()); k-- > 0;) {
    const StepTrace::Op& op = trace.ops[k];
    if (is_pure(op)) {
      uint32_t kept = 0;
      for (const uint32_t output : op.outputs) {
        const uint32_t gone = released[output] == kNever
                                  ? kNever
                                  : std::max(released[output], read_until[output]);
        kept = std::max(kept, std::min(gone, written[output]));
      }
      for (const StepTrace::Input& input : op.inputs) {
        read_until[input.storage] = std::max(read_until[input.storage], kept);
      }
    }
    for (const StepTrace::Input& input : op.inputs) {
      if (input.written) written[input.storage] = k;
    }
  }
  const auto last = static_cast<uint32_t>(trace.ops.empty() ? 0 : trace.ops.size() - 1);
  std::vector<std::vector<uint32_t>> later(trace.ops.size());
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    std::erase_if(trace.ops[k].released, [&](uint32_t storage) {
      const bool kept = !has_recipe[storage] && read_until[storage] > k;
      if (kept) later[std::min(read_until[storage], last)].push_back(storage);
      return kept;
    });
  }
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    trace.ops[k].released.insert(trace.ops[k].released.end(), later[k].begin(), later[k].end());
  }
  return trace;
}

}  // namespace tidemark::planner
