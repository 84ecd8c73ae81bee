// Runs and frees of a captured step's problem as a `Schedule`, which sessions run.
//
//   runs    conv.0  relu.1  free conv.0  ...  conv.0  conv_grad.7  free conv.0
//   code    run 0   run 1   evict s2     ...  run 0   run 7        free s2
//                                             again
//
// - The program's calls run in the order of their nodes' first runs, each upload before the
//   next call that follows it in the program.
// - A storage leaves when its value is freed: by kFree once the program has dropped it, by
//   kEvict before that. An output that no run wants leaves right after its call.
// - A storage stays until the program drops it if nothing could compute it in the meantime: a
//   parameter that it is computed from is updated before that. The problem does not count it.
// - A run again writes to scratch what is resident, not wanted or not used later. The runtime
//   brings back all that the program still holds, so that gets a block and leaves right after.
// - Storages from before the step, and uploads, stay as long as a run reads them or the runtime
//   keeps them for recipes.
// - All blocks get offsets (schedule_layout.h), with moves where needed.
//
// The problem counts bytes, the schedule has addresses: a layout may need more than the peak of
// the runs.
//
// Threads: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_schedule.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner::remat {

// What planners leave of the space in turn until the schedule has a layout: shares of the
// space.
inline constexpr double kMargins[] = {0, 0.01, 0.02, 0.04, 0.08, 0.16};

struct StepSchedule {
  std::optional<tidemark::Schedule> schedule{};
  std::string why_not{};  // in words, if there is no schedule
  Bytes load{0};          // most bytes in blocks at once, foreign ones included
};

// `runs`: a schedule of `problem` in which validate() finds no fault. `foreign`: sizes of
// storages that exist besides the trace's. REQUIRES: `problem` is problem_from_step(trace).
StepSchedule schedule_from_runs(const StepTrace& trace, const StepProblem& problem,
                                const std::vector<Event>& runs, const PlanLimits& limits,
                                const std::vector<Bytes>& foreign);

}  // namespace tidemark::planner::remat
