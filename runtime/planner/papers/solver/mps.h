// A program as solvers read it: free MPS, with C0, C1, ... for variables and R0, R1, ... for
// rows, and all digits of every number.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner {

// REQUIRES: check_program() passes.
std::string to_mps(const Program& program);

// A number with as many digits as it takes to read it back as the same.
std::string to_text(double value);

}  // namespace tidemark::planner
