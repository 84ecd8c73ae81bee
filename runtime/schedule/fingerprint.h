// Numbers that tell apart what goes into a schedule and what comes out: reports print them, so
// that two runs can be compared. Equal data gives equal numbers on every machine; other data
// gives others, but for collisions of 64 bits.
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

// Of what a schedule is made from: the step, what its operators cost, the limits, the sizes of
// storages that the step does not use, and how much work its producer may do. What people call
// things is left out, and what an earlier step or search left to begin with.
uint64_t fingerprint(const StepTrace& trace, const PlanLimits& limits,
                     const std::vector<Bytes>& foreign, int64_t work);
uint64_t fingerprint(const Schedule& schedule);

// Sixteen digits, as they are printed.
std::string fingerprint_text(uint64_t fingerprint);

}  // namespace tidemark
