#include "runtime/planner/recorded_schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/planner/schedule_layout.h"

namespace tidemark::planner {
namespace {

using Do = Schedule::Do;

// When each instruction is issued, if operators take their expected times.
std::vector<Nanos> issue_times(const StepTrace& trace, const Schedule& schedule) {
  std::vector<Nanos> times;
  Nanos now{0};
  for (const auto& instruction : schedule.code) {
    times.push_back(now);
    if (instruction.what == Do::kRun) now += trace.ops[instruction.subject].cost;
  }
  return times;
}

// A copy of a block: the instruction that begins it, and the one by which it should be done.
struct CopyOfBlock {
  uint32_t block = 0;
  uint32_t begin = 0;
  uint32_t done = 0;
};

struct Copies {
  std::vector<CopyOfBlock> out, in;
};

// Copies run one after the other.
template <class TimeOf>
void expect(std::vector<CopyOfBlock>& copies, const std::vector<Nanos>& issued,
            const TimeOf& time_of) {
  std::stable_sort(
      copies.begin(), copies.end(),
      [](const CopyOfBlock& a, const CopyOfBlock& b) { return a.begin < b.begin; });
  Nanos link_free{0};
  for (CopyOfBlock& copy : copies) {
    link_free = std::max(link_free, issued[copy.begin]) + time_of(copy.block);
    copy.done = static_cast<uint32_t>(
        std::upper_bound(issued.begin(), issued.end(), link_free) - issued.begin());
  }
}

Copies copies_of(const StepTrace& trace, const Schedule& schedule, const PlanLimits& limits) {
  Copies copies;
  std::vector<uint32_t> block_of(trace.storages.size() + schedule.foreign.size(), 0);
  std::vector<bool> copied(block_of.size(), false);  // since it was written last
  for (uint32_t b = 0; b < schedule.initial_blocks; ++b)
    block_of[schedule.blocks[b].storage] = b;
  for (uint32_t i = 0; i < schedule.code.size(); ++i) {
    const Schedule::Instruction& instruction = schedule.code[i];
    for (uint32_t k = 0; k < instruction.blocks; ++k) {
      const uint32_t b = instruction.first_block + k;
      const uint32_t storage = schedule.blocks[b].storage;
      if (storage != Schedule::kScratch) block_of[storage] = b;
    }
    if (instruction.what == Do::kRun) {
      const StepTrace::Op& op = trace.ops[instruction.subject];
      for (const StepTrace::Input& input : op.inputs) {
        if (input.written) copied[input.storage] = false;
      }
      for (const uint32_t output : op.outputs) copied[output] = false;
    } else if (instruction.what == Do::kCopyIn) {
      copies.in.push_back({instruction.first_block, i});
      copied[instruction.subject] = true;
    } else if (instruction.what == Do::kCopyOut || instruction.what == Do::kOffload) {
      if (!copied[instruction.subject])
        copies.out.push_back({block_of[instruction.subject], i});
      copied[instruction.subject] = true;
    }
  }
  const std::vector<Nanos> issued = issue_times(trace, schedule);
  const auto size = [&](uint32_t block) { return schedule.blocks[block].size; };
  expect(copies.out, issued, [&](uint32_t block) { return limits.out_time(size(block)); });
  expect(copies.in, issued, [&](uint32_t block) { return limits.in_time(size(block)); });
  return copies;
}

// Blocks live before the step lie together at the lower end: first those that stay throughout,
// so that the others leave one hole, otherwise in their present order.
std::vector<std::optional<Offset>> places_between_steps(const Schedule& schedule,
                                                        size_t storages) {
  const auto& blocks = schedule.blocks;
  const auto last = static_cast<uint32_t>(schedule.code.size());
  std::vector<uint32_t> first;
  for (uint32_t b = 0; b < schedule.initial_blocks; ++b) first.push_back(b);
  std::stable_partition(first.begin(), first.end(),
                        [&](uint32_t b) { return blocks[b].end == last; });
  std::vector<std::optional<Offset>> of_storage(storages);
  std::vector<std::optional<Offset>> preferred(blocks.size());
  Offset to(0);
  for (const uint32_t b : first) {
    of_storage[blocks[b].storage] = preferred[b] = to;
    to = to + blocks[b].size;
  }
  for (uint32_t b = schedule.initial_blocks; b < blocks.size(); ++b) {
    const bool stays = blocks[b].end == last && blocks[b].storage != Schedule::kScratch;
    if (stays) preferred[b] = of_storage[blocks[b].storage];
  }
  return preferred;
}

}  // namespace

std::optional<Schedule> place_recorded(const StepTrace& trace, const Schedule& schedule,
                                       const PlanLimits& limits, int64_t nodes) {
  const Copies copies = copies_of(trace, schedule, limits);
  UnplacedSchedule unplaced;
  unplaced.schedule = schedule;
  unplaced.preferred =
      places_between_steps(schedule, trace.storages.size() + schedule.foreign.size());
  for (const auto* direction : {&copies.out, &copies.in}) {
    for (const CopyOfBlock& copy : *direction) {
      unplaced.pinned.push_back({copy.block, copy.begin + 1, copy.done});
    }
  }
  for (const CopyOfBlock& copy : copies.out) {
    uint32_t& end = unplaced.schedule.blocks[copy.block].end;
    end = std::max(end, copy.done);
  }
  auto placed = place_blocks(unplaced, limits, nodes);
  if (!placed) {
    unplaced.schedule.blocks = schedule.blocks;
    placed = place_blocks(unplaced, limits, nodes);
  }
  if (!placed) return std::nullopt;
  placed->peak_bound = max_resident(schedule);
  placed->method = "the policy's recorded releases";
  return placed;
}

}  // namespace tidemark::planner
