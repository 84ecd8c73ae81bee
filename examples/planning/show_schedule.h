// A saved schedule, told in words and figures.
//
// Threads: the calling thread.
#pragma once

#include <string>

#include "runtime/core/units.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule_json.h"

namespace tidemark {

// Prints what the schedule is: operators, order, releases, peak beside its bound and the room,
// time as expected and as simulated, the largest releases, and what the validator finds wrong
// with it. `limits.space` of 0: as much as it takes. False: it is not valid, or does not fit.
bool print_schedule(const std::string& name, const SavedSchedule& saved, PlanLimits limits);

}  // namespace tidemark
