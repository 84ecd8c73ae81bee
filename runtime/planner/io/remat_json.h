// Rematerialisation problems and their schedules, as JSON ("remat-1").
//
//   {"format": "remat-1", "name": "toy", "unit_time": "ms", "fixed_bytes": 0, "nodes": [
//     {"name": "a", "time": 1, "bytes": 10, "inputs": [], "workspace": 4},
//     {"name": "b", "bytes": 20, "required": true, "inputs": [0], "variants": [
//        {"time": 2}, {"time": 1, "workspace": 8, "overwrites": 0, "when": "first"}]}]}
//
// A variant's absent keys come from its node; a node without variants is its only variant.
// `base_time` defaults to the sum of the nodes' times. Unknown keys are ignored. The schedule:
//
//   {"budget_bytes": 40, "schedule": [["compute", 0, 0], ["compute", 1, 1], ["free", 0]],
//    "peak": 38, "time": 2, "bound": 2, "seconds": 0.01}
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/planner/remat/remat_schedule.h"

namespace tidemark::planner {

// Throws DataError, naming the place, for text that is not JSON of this form and for a problem
// that check_problem() rejects. `file` is for the message.
remat::Problem parse_remat_problem(const std::string& text, const std::string& file);

// Throws DataError, naming the place, for text that is not JSON of this form. Whether the
// schedule is valid is not checked.
std::vector<remat::Event> parse_remat_schedule(const std::string& text,
                                               const std::string& file);

struct RematFigures {
  int64_t budget = 0;  // bytes
  double bound = 0;    // no schedule takes less time
  double seconds = 0;
};
std::string format_remat_schedule(const remat::Schedule& schedule, const RematFigures& figures);

}  // namespace tidemark::planner
