// Draws a placed schedule: instructions to the right, addresses upwards.
//
//   peak  |        +--------+
//         |  +-----+ again  |     a block, coloured by its storage's category; framed if it was
//         |  |     +--------+     computed again, copied in, or moved
//      0  +--+--------------+--   a line: bytes taken at once
//   run again     |        .
//   evict    .  |           .     a row of marks for each kind of instruction that releases
//   ...                           memory or brings back what was released
//
// Tooltips describe blocks and marks.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

// `title` may be any text. REQUIRES: the schedule is placed; its storages and operators are in
// the trace.
std::string draw_schedule(const StepTrace& trace, const Schedule& schedule,
                          const std::string& title);

}  // namespace tidemark
