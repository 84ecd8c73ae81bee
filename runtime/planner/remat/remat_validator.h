// Checks a schedule event by event, by the problem's own rules. Shares no code with the search.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/planner/remat/remat_schedule.h"

namespace tidemark::planner::remat {

struct Verdict {
  std::string fault{};  // the first broken rule, with its event; empty: the schedule is valid
  int64_t peak = 0;     // bytes; of the runs before the fault
  double time = 0;
};

// Whether the peak fits in a budget is for the caller to compare.
Verdict validate(const Problem& problem, const std::vector<Event>& events);

}  // namespace tidemark::planner::remat
