// Solves integer programs with HiGHS or CBC, whichever the system has.
//
// Neither is needed to build or to run: they are programs of their own, found when asked for
// and run each in a process that is killed when its time is up. What they answer is input from
// outside: parsed with checks, and no solution is believed before our own check of every row.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner {

enum class SolverKind : uint8_t { kHighs, kCbc };

struct Solver {
  SolverKind kind = SolverKind::kHighs;
  std::string path;  // of its executable, absolute
};
const char* to_string(SolverKind kind);

// Those that the system has, the better first: `highs` and `cbc` in PATH. TIDEMARK_HIGHS and
// TIDEMARK_CBC name an executable elsewhere, or, set to nothing, leave that one out.
std::vector<Solver> find_solvers();

// The first of them. Throws UsageError that says what to install if there is none.
Solver require_solver();

struct SolveLimits {
  double seconds = 60;  // of wall clock, from the start of the call
  double gap = 0;       // a solution that is proven to be so near the least will do; relative
  int threads = 1;
  uint64_t seed = 1;
};

enum class SolveStatus : uint8_t {
  kOptimal,     // proven, to the gap and the solver's tolerance (1e-6)
  kFeasible,    // a solution, perhaps the start itself
  kInfeasible,  // proven: there is none
  kUnbounded,   // proven: no solution is the least. HiGHS may say so of an infeasible program
                // too, if its objective is not bounded by the variables' bounds
  kUnknown,     // no answer in time
};
const char* to_string(SolveStatus status);

struct Solution {
  SolveStatus status = SolveStatus::kUnknown;
  std::vector<double> values;  // kOptimal, kFeasible: one per variable; integers are integers
  double objective = kInfinity;
  double bound = -kInfinity;  // no solution is below it
  double seconds = 0;
  bool from_start = false;  // nothing better than the start was found
  std::string solver;
  std::string note;  // how it ended, if not by itself
};

// Never worse than program.start, if there is one.
// Throws UsageError if check_program() does or the start is no solution, DataError with the
// place if what the solver wrote is not what it should be, is no solution, or contradicts the
// start.
Solution solve(const Program& program, const SolveLimits& limits, const Solver& solver);
Solution solve(const Program& program, const SolveLimits& limits);  // with require_solver()

}  // namespace tidemark::planner
