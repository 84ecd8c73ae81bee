// Lower bounds of rematerialisation from an integer program's solver, if the system has one.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/remat/remat_bound.h"

namespace tidemark::planner {

// For remat::BoundOptions. Null if find_solvers() finds none. A solver that fails, or has no
// bound in time, bounds nothing: the result is then minus infinity.
remat::IntegerBound integer_bound();

}  // namespace tidemark::planner
