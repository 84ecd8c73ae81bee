// Writes a program as free MPS for solvers: variables C0, C1, ..., rows R0, R1, ..., numbers
// with all digits.
//
// Threads: functions without state.
#pragma once

#include <string>

#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner {

// REQUIRES: check_program() passes.
std::string to_mps(const Program& program);

// The shortest text that reads back as the same number.
std::string to_text(double value);

}  // namespace tidemark::planner
