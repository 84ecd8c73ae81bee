// From a method's decisions to a schedule: runs in order, each value freed after its last use.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/remat/remat_schedule.h"

namespace tidemark::planner::remat {

struct PlannedRun {
  NodeId node = kNoNode;
  int32_t variant = 0;
  bool operator==(const PlannedRun&) const = default;
};

struct DecodedRuns {
  Schedule
      schedule{};  // the least memory for these runs in this order; the validator's figures
  std::string fault{};  // the rule of the problem that the runs break; empty: none
};

DecodedRuns decode_runs(const Problem& problem, const std::vector<PlannedRun>& runs);

// The schedule alone. Runs that break a rule of the problem are an internal error, which
// throws.
Schedule schedule_runs(const Problem& problem, const std::vector<PlannedRun>& runs);

}  // namespace tidemark::planner::remat
