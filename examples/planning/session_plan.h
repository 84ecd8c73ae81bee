// Plans a step as a session does that may offload to tiers (planner/pipeline/pipeline.h).
//
// Threads: the calling thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct SessionPlanRequest {
  std::string name;
  PlanLimits limits;
  std::vector<Bytes> foreign;
  int64_t effort;             // in simulated calls; what a session would take if less
  std::string save_schedule;  // empty: is not written
};

// Prints the time of the planned step beside that of the step without a limit, and what no plan
// can be below. Returns the exit code: 3 if nothing was found that fits.
int plan_step_as_session(const StepTrace& step, const SessionPlanRequest& request);

}  // namespace tidemark
