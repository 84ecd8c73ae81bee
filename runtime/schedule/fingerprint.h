// Hashes of a schedule's inputs and of the schedule itself. Reports print them, so that two
// runs can be compared. Equal data give equal numbers on every machine; different data give
// different numbers, except for 64-bit collisions.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

// Hash of a producer's inputs: the step, its operators' costs, the limits, the sizes of
// storages that the step does not use, and the producer's maximum work. Excludes names, and any
// results of earlier steps or searches.
uint64_t fingerprint(const StepTrace& trace, const PlanLimits& limits,
                     const std::vector<Bytes>& foreign, int64_t work);
// Without names and bounds of its time.
uint64_t fingerprint(const Schedule& schedule);

// The sixteen digits that reports print.
std::string fingerprint_text(uint64_t fingerprint);

}  // namespace tidemark
