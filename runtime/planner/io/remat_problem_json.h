// Writes rematerialisation problems as JSON ("remat-1", see remat_json.h, which reads them).
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/planner/remat/remat_problem.h"

namespace tidemark::planner {

// `budgets`, in bytes, are for the reader.
std::string format_remat_problem(const remat::Problem& problem,
                                 const std::vector<int64_t>& budgets);

}  // namespace tidemark::planner
