// Solvers for tests that need one, if the system has any.
//
// Threads: functions without state.
#pragma once

#include <optional>

#include "runtime/planner/papers/solver/solver.h"

namespace tidemark::planner {

inline std::optional<Solver> solver_of(SolverKind kind) {
  for (const Solver& solver : find_solvers()) {
    if (solver.kind == kind) return solver;
  }
  return std::nullopt;
}

}  // namespace tidemark::planner

// For use in a test's body.
#define TIDEMARK_SKIP_WITHOUT_SOLVER()             \
  if (::tidemark::planner::find_solvers().empty()) \
  GTEST_SKIP() << "this system has no solver: neither HiGHS nor CBC"
