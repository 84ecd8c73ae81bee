// Shared by the validator's parts: fault messages and sizes of storages. Private to
// schedule_validator.cc, validator_blocks.cc and validator_storages.cc.
//
// Threads: belongs to one.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::schedule_validator {

struct Notes {
  const StepTrace& trace;
  const PlanLimits& limits;
  const Schedule& schedule;
  const size_t limit;
  std::vector<std::string> found{};

  void say(std::string what) {
    if (found.size() < limit) found.push_back(std::move(what));
  }
  void say_at(size_t instruction, const std::string& what) {
    if (found.size() < limit) say("instruction " + std::to_string(instruction) + ": " + what);
  }

  size_t storages() const { return trace.storages.size() + schedule.foreign.size(); }
  bool is_foreign(uint32_t storage) const { return storage >= trace.storages.size(); }
  // Whether it lives through the whole step.
  bool stays(uint32_t storage) const {
    return is_foreign(storage) ||
           (trace.storages[storage].at_start && trace.storages[storage].at_end);
  }
  bool is_apart(uint32_t storage) const { return schedule.residents_apart && stays(storage); }
  Bytes size(uint32_t storage) const {
    return is_foreign(storage) ? schedule.foreign[storage - trace.storages.size()]
                               : trace.storages[storage].size;
  }
  std::string name(uint32_t storage) const {
    return "storage " + std::to_string(storage) +
           (is_foreign(storage) ? " (foreign)"
                                : " (" + std::string(trace.storages[storage].label()) + ")");
  }
  std::string op(uint32_t k) const {
    return "op " + std::to_string(k) + " (" + std::string(trace.ops[k].label()) + ")";
  }
};

// Checks that ids are in range, that each block belongs to one instruction, and that each
// instruction has the blocks it needs. False: nothing further can be checked.
bool check_references(Notes& notes);
// Checks placement, space and the stated figures. REQUIRES: check_references().
void check_space(Notes& notes);
// Checks order, residence, lives, and the way out. REQUIRES: check_references().
void check_storages(Notes& notes);

}  // namespace tidemark::schedule_validator
