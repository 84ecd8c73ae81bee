#include "runtime/schedule/validator_onlooker.h"

#include <algorithm>

namespace tidemark::schedule_validator {

Onlooker::Onlooker(const Notes& notes)
    : ran(notes.trace.ops.size()), notes_(notes), known_(notes.storages()) {
  std::vector<uint32_t> variant(notes.trace.ops.size());  // that runs first
  for (const Schedule::Instruction& it : notes.schedule.code) {
    if (it.variant != 0) variant[it.subject] = it.variant;
  }
  for (uint32_t k = 0; k < notes.trace.ops.size(); ++k) {
    const StepTrace::Op& op = notes.trace.ops[k];
    for (const StepTrace::Input& input : op.implementation(variant[k]).inputs) {
      ++known_[input.storage].uses_left;
    }
    for (const StepTrace::Input& input : op.inputs) {
      if (variant[k] != 0) ++known_[input.storage].own_uses_left;
    }
    for (const uint32_t output : op.outputs) {
      known_[output].producer = k;
      ++known_[output].uses_left;
    }
  }
}

bool Onlooker::writes(const StepTrace::Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [](const StepTrace::Input& input) { return input.written; });
}

bool Onlooker::may_be_made_again(uint32_t storage) const {
  const uint32_t producer = known_[storage].producer;
  if (producer == kNone || !ran[producer]) return false;
  const StepTrace::Op& op = notes_.trace.ops[producer];
  return notes_.trace.storages[storage].may_evict && op.kind == StepTrace::Kind::kCall &&
         !writes(op);
}

std::vector<uint32_t> Onlooker::newly_lost() {
  has_.assign(known_.size(), Has::kUnknown);
  std::vector<uint32_t> lost;
  for (uint32_t s = 0; s < known_.size(); ++s) {
    if (!wanted(s) || known_[s].lost || can_be_had(s)) continue;
    known_[s].lost = true;
    lost.push_back(s);
  }
  return lost;
}

// Decides inputs first, with a list instead of recursion: chains are as long as the step.
bool Onlooker::can_be_had(uint32_t storage) {
  pending_.assign(1, storage);
  while (!pending_.empty()) {
    const uint32_t s = pending_.back();
    if (has_[s] == Has::kUnknown) has_[s] = decide(s);  // may add its inputs to the list
    if (has_[s] != Has::kUnknown && pending_.back() == s) pending_.pop_back();
  }
  return has_[storage] == Has::kYes;
}

// Unknown: inputs that are not decided yet have been put on the list.
Onlooker::Has Onlooker::decide(uint32_t storage) {
  const Known& known = known_[storage];
  if (resident(storage) || known.copied) return Has::kYes;
  if (known.version != 0 || !may_be_made_again(storage)) return Has::kNo;
  const std::vector<StepTrace::Input>& inputs = notes_.trace.ops[known.producer].inputs;
  for (const StepTrace::Input& input : inputs) {
    const bool overwritten = known_[input.storage].version != input.version;
    if (overwritten || has_[input.storage] == Has::kNo) return Has::kNo;
  }
  Has answer = Has::kYes;
  for (const StepTrace::Input& input : inputs) {
    if (has_[input.storage] != Has::kUnknown) continue;
    pending_.push_back(input.storage);
    answer = Has::kUnknown;
  }
  return answer;
}

}  // namespace tidemark::schedule_validator
