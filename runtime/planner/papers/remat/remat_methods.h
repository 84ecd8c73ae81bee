// Methods for rematerialisation problems by name: ours, and published ones.
//
// To add one: a file with a function that returns its RematMethod, and a line in
// TIDEMARK_REMAT_METHODS.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/planner/limits.h"
#include "runtime/planner/papers/solver/solver.h"
#include "runtime/planner/remat/remat_schedule.h"

namespace tidemark::planner::remat {

struct RematResult {
  // Valid; empty if none was found. Its peak may exceed the budget only for a method that does
  // not take a budget.
  Schedule schedule{};
  // No schedule of any kind takes less time; 0: the method does not say.
  double bound = 0;
  // No schedule of the method's own kind takes less, in its order, with its stages; 0: not
  // said.
  double own_bound = 0;
  std::string note{};      // how it ended, if not with a schedule that fits
  bool undecided = false;  // no schedule, and none of the method's kind is ruled out
  double seconds = 0;
  // Of an integer program, if the method has one.
  SolveStatus status = SolveStatus::kUnknown;
  size_t variables = 0, rows = 0;

  bool found() const { return !schedule.events.empty(); }
  bool fits(int64_t budget) const { return found() && schedule.peak <= budget; }
};

struct RematMethod {
  std::string name{};  // on command lines: lower case, digits, hyphens
  std::string what{};  // description, one line
  bool needs_solver = false;
  bool searches = false;     // by ourselves, in steps that Limits::nodes counts
  bool knows_riders = true;  // off: it cannot read problems that have some
  // Throws UsageError for problems that the method cannot read, saying why, and if the system
  // lacks a solver that it needs, saying what to install. REQUIRES: check_problem() passes.
  std::function<RematResult(const Problem&, int64_t budget, const Limits&)> plan{};
};

// The default planner first.
const std::vector<RematMethod>& remat_methods();

// Null if no method has that name.
const RematMethod* find_remat_method(const std::string& name);

// clang-format off
#define TIDEMARK_REMAT_METHODS(X) \
  X(search_method)                \
  X(monet_method)                 \
  X(monet_noop_method)            \
  X(monet_eager_method)           \
  X(checkmate_method)             \
  X(chen_method)                  \
  X(chen_budget_method)           \
  X(gist_method)
// clang-format on

#define TIDEMARK_DECLARE_METHOD(function) RematMethod function();
TIDEMARK_REMAT_METHODS(TIDEMARK_DECLARE_METHOD)
#undef TIDEMARK_DECLARE_METHOD

}  // namespace tidemark::planner::remat
