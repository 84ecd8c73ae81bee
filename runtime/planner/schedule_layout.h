// Gives the blocks of a schedule their offsets. If no layout without moves is found, a few
// blocks are moved, at planned times.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// An interval of instructions [begin, end) in which a block must not move, because it cannot be
// named by then or because a copy reads or writes it. The copy may be waited for if its end is
// known.
struct PinnedInterval {
  uint32_t block = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  std::optional<Nanos> until{};  // the copy's end
};

// A schedule without offsets, with data for its layout.
struct UnplacedSchedule {
  Schedule schedule;
  std::vector<PinnedInterval> pinned;
  std::vector<Nanos> issued;  // time of each instruction, if ends of copies are known
  // One per block. A block from before the step begins at its preferred offset. A block that
  // exists at the step's end should end there, because the next step would otherwise move it
  // back.
  std::vector<std::optional<Offset>> preferred;
};

// Puts persistent storages at the lower end, those that are small in an arena of `space` first
// and otherwise in their order, so that steps of this and other programs can follow without
// moves; storages freed in this step lie above them.
void prefer_initial_places(UnplacedSchedule& unplaced, const StepTrace& trace, Bytes space);

// The schedule with offsets and any moves; sets `peak`, `moved` and `placed`. None if no layout
// within limits.space was found. `nodes`: steps of search; the layout depends on nothing else.
// Scratch blocks are never moved. Moves are added to `time`, waits for them are not.
std::optional<Schedule> place_blocks(const UnplacedSchedule& unplaced, const PlanLimits& limits,
                                     int64_t nodes);

// The time of moves after the step, which put blocks back to where the next one expects them.
// simulate() does not know of them.
Nanos time_between_steps(const Schedule& schedule, const PlanLimits& limits);

}  // namespace tidemark::planner
