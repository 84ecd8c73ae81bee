// Records a simulation as a schedule.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

class ScheduleWriter {
 public:
  using Do = Schedule::Do;

  explicit ScheduleWriter(const StepTrace& trace)
      : trace_(&trace), block_of_(trace.storages.size(), 0) {}

  // Before the step.
  void begin_with(uint32_t storage) { take(storage, trace_->storages[storage].size); }
  void take_foreign(uint32_t storage, Bytes size) {
    result_.schedule.blocks.push_back({storage, size, 0, 0});
  }
  void end_of_beginning() {
    result_.schedule.initial_blocks = static_cast<uint32_t>(result_.schedule.blocks.size());
  }

  void add(Do what, uint32_t subject, Nanos issued, bool again = false) {
    std::erase_if(copies_, [&](const auto& copy) {
      if (copy.first > issued) return false;
      result_.pinned[copy.second].end = now();
      return true;
    });
    result_.issued.push_back(issued);
    result_.schedule.code.push_back(
        {.what = what, .again = again, .subject = subject, .first_block = block_count()});
  }
  // The last instruction added runs that variant of its call.
  void choose(uint32_t variant) { result_.schedule.code.back().variant = variant; }
  // Takes blocks for the last instruction added.
  void take(uint32_t storage, Bytes size) {
    if (storage != Schedule::kScratch) block_of_[storage] = block_count();
    const uint32_t at = now() == 0 ? 0 : now() - 1;
    if (now() > 0) ++result_.schedule.code.back().blocks;
    result_.schedule.blocks.push_back({storage, size, at, at + 1});
  }
  // The last instruction added runs in place: the block that it takes first lies where the
  // storage's block is, which ends.
  void overwrite(uint32_t storage) {
    result_.schedule.code.back().overwrites = storage;
    result_.schedule.blocks[block_of_[storage]].end = now() - 1;
  }
  // Ends a block: its space may be reused after the last instruction added.
  void end(uint32_t block) { result_.schedule.blocks[block].end = now(); }
  // From the next instruction on, the block must not move.
  void pin(uint32_t block) { result_.pinned.push_back({block, now(), kOpen, {}}); }
  // The same until instructions are issued at `end`, or only after waiting for it: the last
  // instruction added has begun a copy of the block, which ends then.
  void pin_copy(uint32_t block, Nanos end) {
    copies_.emplace_back(end, result_.pinned.size());
    result_.pinned.push_back({block, now(), kOpen, end});
  }

  uint32_t block_of(uint32_t storage) const { return block_of_[storage]; }
  uint32_t now() const { return static_cast<uint32_t>(result_.schedule.code.size()); }
  uint32_t block_count() const { return static_cast<uint32_t>(result_.schedule.blocks.size()); }

  // Blocks still pinned stay so until they end.
  UnplacedSchedule finish() {
    for (PinnedInterval& pinned : result_.pinned) {
      if (pinned.end == kOpen) pinned.end = result_.schedule.blocks[pinned.block].end;
    }
    return std::move(result_);
  }

 private:
  static constexpr uint32_t kOpen = Schedule::kScratch;

  const StepTrace* trace_;
  UnplacedSchedule result_;
  std::vector<uint32_t> block_of_;                // by storage: its last block
  std::vector<std::pair<Nanos, size_t>> copies_;  // under way: their ends and pins
};

}  // namespace tidemark::planner
