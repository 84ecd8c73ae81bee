// A captured step by one of the methods, as a schedule that sessions run.
//
// A method counts bytes; the layout of its schedule needs addresses. Where no layout within the
// space is found, the method plans again for less, in steps of kMargins.
//
// Threads: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner::remat {

struct StepByMethod {
  std::optional<tidemark::Schedule> schedule{};  // valid within the limits
  std::string why_not{};                         // in words, if there is no schedule
  RematResult result{};                          // of the last try
  Bytes margin{0};                               // what that try left of the space
};

// `limits`: the seconds are for all tries, each of which may take half of what is left; other
// work is for each. `space.space`: what the arena
// holds, storages from before the step and foreign ones included. REQUIRES: trace_violations()
// finds nothing. Throws UsageError as the method does.
StepByMethod plan_step_by(const RematMethod& method, const StepTrace& trace,
                          const PlanLimits& space, const std::vector<Bytes>& foreign,
                          const Limits& limits);

}  // namespace tidemark::planner::remat
