#include "runtime/planner/reordered_trace.h"

#include <algorithm>

#include "runtime/planner/from_trace.h"
#include "runtime/planner/problem.h"

namespace tidemark::planner {

StepTrace reordered(const StepTrace& trace, const std::vector<uint32_t>& order) {
  StepTrace result;
  result.storages = trace.storages;
  result.text = trace.text;
  std::vector<uint32_t> last(trace.storages.size(), 0);  // position of its last use or release
  std::vector<bool> released(trace.storages.size(), false);
  for (uint32_t t = 0; t < order.size(); ++t) {
    StepTrace::Op& op = result.ops.emplace_back(trace.ops[order[t]]);
    for (const StepTrace::Input& input : op.inputs) last[input.storage] = t;
    for (const uint32_t output : op.outputs) last[output] = t;
    for (const uint32_t storage : op.released) {
      last[storage] = t;
      released[storage] = true;
    }
    op.released.clear();
  }
  for (uint32_t s = 0; s < last.size(); ++s) {
    if (released[s]) result.ops[last[s]].released.push_back(s);
  }
  return result;
}

void rename_operators(Schedule& schedule, const std::vector<uint32_t>& order) {
  for (Schedule::Instruction& instruction : schedule.code) {
    if (names_op(instruction)) instruction.subject = order[instruction.subject];
  }
}

std::vector<uint32_t> order_of(const Schedule& schedule) {
  std::vector<uint32_t> order;
  for (const Schedule::Instruction& instruction : schedule.code) {
    if (is_program_op(instruction)) order.push_back(instruction.subject);
  }
  return order;
}

std::vector<uint32_t> updates_first(const StepTrace& trace) {
  const auto before = predecessors(problem_from_trace(trace));
  std::vector<uint32_t> waits_for(trace.ops.size());
  std::vector<std::vector<uint32_t>> updates_after(trace.ops.size());
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    const StepTrace::Op& op = trace.ops[k];
    const bool writes =
        std::any_of(op.inputs.begin(), op.inputs.end(),
                    [](const StepTrace::Input& input) { return input.written; });
    if (!writes || !op.outputs.empty() || before[k].empty()) continue;
    waits_for[k] = static_cast<uint32_t>(before[k].size());
    for (const OpId op_before : before[k])
      updates_after[static_cast<size_t>(op_before)].push_back(k);
  }
  std::vector<uint32_t> order;
  std::vector<bool> done(trace.ops.size());
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    if (done[k]) continue;
    size_t next = order.size();
    order.push_back(k);
    for (; next < order.size(); ++next) {
      done[order[next]] = true;
      for (const uint32_t update : updates_after[order[next]]) {
        if (--waits_for[update] == 0 && !done[update]) order.push_back(update);
      }
    }
  }
  return order;
}

}  // namespace tidemark::planner
