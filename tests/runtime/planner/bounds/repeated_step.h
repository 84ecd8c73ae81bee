// The time of a step among others that are alike, by simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/simulate.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::testing {

// The schedule with state offloaded and copied in at its end, so that it ends as it begins.
inline Schedule ending_as_it_begins(const StepTrace& trace, Schedule schedule) {
  using Do = Schedule::Do;
  std::vector<bool> first(trace.storages.size(), false);
  for (uint32_t b = 0; b < schedule.initial_blocks; ++b) {
    first[schedule.blocks[b].storage] = true;
  }
  std::vector<bool> now = first;
  for (const Schedule::Instruction& it : schedule.code) {
    if (it.what == Do::kOffload) now[it.subject] = false;
    if (it.what == Do::kCopyIn) now[it.subject] = true;
  }
  for (uint32_t s = 0; s < now.size(); ++s) {
    if (!trace.storages[s].at_start || now[s] == first[s]) continue;
    if (now[s]) {
      schedule.code.push_back({.what = Do::kOffload, .subject = s});
      continue;
    }
    const auto block = static_cast<uint32_t>(schedule.blocks.size());
    schedule.code.push_back(
        {.what = Do::kCopyIn, .subject = s, .first_block = block, .blocks = 1});
    schedule.blocks.push_back({.storage = s, .size = trace.storages[s].size});
  }
  return schedule;
}

// No less than the time of a step in the long run: so many steps are simulated as one, until
// all copies are done. REQUIRES: a storage exists before the step and after it, or neither.
inline Nanos time_among_many(const StepTrace& trace, const PlanLimits& limits,
                             const Schedule& schedule, uint32_t steps = 16) {
  const Schedule one = ending_as_it_begins(trace, schedule);
  StepTrace many;
  many.storages = trace.storages;
  Schedule all = one;
  all.placed = false;
  all.code.clear();
  all.blocks.resize(one.initial_blocks);
  for (uint32_t n = 0; n < steps; ++n) {
    std::vector<uint32_t> name;
    for (uint32_t s = 0; s < trace.storages.size(); ++s) {
      const bool is_new = n > 0 && !trace.storages[s].at_start;
      name.push_back(is_new ? static_cast<uint32_t>(many.storages.size()) : s);
      if (is_new) many.storages.push_back(trace.storages[s]);
    }
    const auto first_op = static_cast<uint32_t>(many.ops.size());
    for (StepTrace::Op op : trace.ops) {
      for (StepTrace::Input& input : op.inputs) input.storage = name[input.storage];
      for (uint32_t& output : op.outputs) output = name[output];
      many.ops.push_back(op);
    }
    const auto shift = static_cast<uint32_t>(all.blocks.size()) - one.initial_blocks;
    for (Schedule::Instruction it : one.code) {
      it.subject = names_op(it) ? it.subject + first_op : name[it.subject];
      if (it.in_place()) it.overwrites = name[it.overwrites];
      it.first_block += shift;
      all.code.push_back(it);
    }
    for (uint32_t b = one.initial_blocks; b < one.blocks.size(); ++b) {
      Schedule::Block block = one.blocks[b];
      if (block.storage != Schedule::kScratch) block.storage = name[block.storage];
      all.blocks.push_back(block);
    }
  }
  StepTrace::Op last;
  for (uint32_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages[s].at_start) last.inputs.push_back({s});
  }
  all.code.push_back({.subject = static_cast<uint32_t>(many.ops.size())});
  many.ops.push_back(last);
  return Nanos(simulate(many, limits, all).time.count() / steps);
}

}  // namespace tidemark::testing
