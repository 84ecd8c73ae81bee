// A schedule for a captured step that does not fit: what to compute again, and the order of all
// runs. Nothing is copied to a tier. The counterpart of releases/releases_in_order.h, which
// keeps to a few orders and may offload.
//
// Threads: functions without state.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner::remat {

// Plans within limits.space. `foreign`, `effort` and `work`: as for plan_releases(). `stop`, if
// given: ends the search soon once set. If calls have variants, a second search of the same
// effort may run them; alone it might end worse, as it has more to choose from. None: nothing
// was found that fits.
std::optional<tidemark::Schedule> plan_step_remat(const StepTrace& trace,
                                                  const PlanLimits& limits,
                                                  const std::vector<Bytes>& foreign,
                                                  int64_t effort, int64_t* work = nullptr,
                                                  const std::atomic<bool>* stop = nullptr);

}  // namespace tidemark::planner::remat
