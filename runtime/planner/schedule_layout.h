// Gives the blocks of a schedule their places. Where no layout is found in which each block
// stays where it began, a few are moved, at times that are planned too.
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

// A block that must not move before instructions [begin, end): nobody can name it by then, or a
// copy reads or writes it. That may be waited for, if it is known how long.
struct PinnedInterval {
  uint32_t block = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
  std::optional<Nanos> until{};  // the copy's end
};

// What a schedule without places has to say for a layout.
struct UnplacedSchedule {
  Schedule schedule;
  std::vector<PinnedInterval> pinned;
  std::vector<Nanos> issued;  // when each instruction is, if the end of a copy is known
  // One for each block. What is there before the step begins there; what is there at its end
  // should lie there then, as else the next step puts it back.
  std::vector<std::optional<Offset>> preferred;
};

// What lives on lies at the lower end in its order, so that step can follow step without moving
// anything, and steps of other programs too; what goes in this step lies above it.
void prefer_initial_places(UnplacedSchedule& unplaced, const StepTrace& trace);

// The same with places, moves inserted; `peak`, `moved` and `placed` are set. None if no layout
// within limits.space was found. `nodes`: steps of search; the layout depends on nothing else.
// Scratch blocks are never moved. `time` stays as it is, without moves and their waits.
std::optional<Schedule> place_blocks(const UnplacedSchedule& unplaced, const PlanLimits& limits,
                                     int64_t nodes);

// What is expected of it with what is moved, to begin the next step too.
Nanos time_with_moves(const Schedule& schedule, const PlanLimits& limits);

}  // namespace tidemark::planner
