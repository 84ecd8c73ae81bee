// plan_graph --remat: plans rematerialisation from a file within a budget.
//
// Threads: the calling thread.
#pragma once

#include <string>

#include "runtime/core/units.h"
#include "runtime/planner/limits.h"

namespace tidemark {

struct RematRequest {
  std::string problem;  // file, or a bundled one (bundled.h)
  Bytes budget{0};
  std::string output{};  // file for the schedule; empty: none
  planner::Limits limits{};
};

// Prints time, peak, bound and gap; writes the schedule. Returns the exit code: 3 if no
// schedule fits in the budget, with the least budget on standard error. Throws DataError,
// naming the place, for a bad file.
int plan_rematerialization(const RematRequest& request);

}  // namespace tidemark
