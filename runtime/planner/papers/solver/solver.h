// Solves integer programs with HiGHS or CBC, whichever the system has.
//
// Neither is needed to build or to run. Each is a separate program, searched for on request,
// and runs in a process that is killed when its time is up. Its output is untrusted: it is
// parsed with checks, and a solution is accepted only after our own check of every row.
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

// The solvers on this system, better one first: `highs` and `cbc` in PATH. TIDEMARK_HIGHS and
// TIDEMARK_CBC name an executable elsewhere, or, if empty, exclude that solver.
std::vector<Solver> find_solvers();

// The first of find_solvers(). If there is none, throws UsageError, which says what to install.
Solver require_solver();

struct SolveLimits {
  double seconds = 60;  // of wall clock, from the start of the call
  double gap = 0;       // stops when proven this close to the optimum; relative
  int threads = 1;
  uint64_t seed = 1;
};

enum class SolveStatus : uint8_t {
  kOptimal,     // proven, within the gap and the solver's tolerance (1e-6)
  kFeasible,    // a solution, possibly the start itself
  kInfeasible,  // proven: no solution exists
  kUnbounded,   // proven: no solution is the least. HiGHS may say so of an infeasible program
                // too, if its objective is not bounded by the variables' bounds
  kUnknown,     // no answer in time
};
const char* to_string(SolveStatus status);

// A better solution, when the solver found it.
struct Improvement {
  double seconds = 0;  // from the start of the call
  double objective = kInfinity;
  double bound = -kInfinity;  // known by then
};

struct Solution {
  SolveStatus status = SolveStatus::kUnknown;
  std::vector<double> values;  // kOptimal, kFeasible: one per variable; integers are integers
  double objective = kInfinity;
  double bound = -kInfinity;  // no solution is below it
  double seconds = 0;
  bool from_start = false;  // no better solution than the start was found
  // As the solver's log tells, unchecked except for the last one if there is a solution: that
  // is the solution itself. Times are of a tenth of a second. CBC's log tells no bounds.
  std::vector<Improvement> improvements;
  std::string solver;
  std::string note;  // why it ended, if not by itself
};

// Never worse than program.start, if given. Throws UsageError if check_program() does or the
// start is not a solution; DataError, naming the place, if the solver's output is malformed, is
// not a solution, or contradicts the start.
Solution solve(const Program& program, const SolveLimits& limits, const Solver& solver);
Solution solve(const Program& program, const SolveLimits& limits);  // with require_solver()

}  // namespace tidemark::planner
