// Prints a saved schedule in words and figures.
//
// Threads: the calling thread.
#pragma once

#include <string>

#include "runtime/core/units.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule_json.h"

namespace tidemark {

// Prints the schedule's operators, order, releases, peak with its bound and the available
// space, expected and simulated time, the largest releases, and the validator's findings. If
// `limits.space` is 0, the space is as large as needed. Returns the exit code: 1 if the
// schedule is invalid, 3 if it does not fit.
int print_schedule(const std::string& name, const SavedSchedule& saved, PlanLimits limits);

}  // namespace tidemark
