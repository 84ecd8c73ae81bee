// plan_graph --remat: plans rematerialisation from a file within a budget; --write-remat: makes
// such a file from a captured step; --save-schedule with --budget: plans a captured step, for
// sessions to run.
//
// Threads: the calling thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/planner/limits.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct RematRequest {
  std::string problem;  // file, or a bundled one (bundled.h)
  Bytes budget{0};
  std::string output{};  // file for the schedule; empty: none
  planner::Limits limits{};
  std::string method = "default";  // one of planner::remat::remat_methods()
};

// Prints time, peak, bound and gap; writes the schedule. Returns the exit code: 3 if no
// schedule fits in the budget, 1 if none was found and none is ruled out; with the reason on
// standard error, and for the default method with the least budget. A method that takes no
// budget (Chen's, Gist's) writes its schedule even if that does not fit. Throws DataError,
// naming the place, for a bad file; UsageError for an unknown method, or one that cannot read
// the problem.
int plan_rematerialization(const RematRequest& request);

struct WriteRematRequest {
  std::string name, file;
  bool in_place = false;  // with variants that overwrite an input
  bool variants = false;  // with the calls' other implementations (StepTrace::Variant)
  bool workspace = true;  // off: no operator has one
  bool recompute = true;  // off: every node runs once
};

// Writes the step as a rematerialisation problem, with budgets between its fixed bytes and what
// keeping everything takes.
void write_rematerialization_problem(const StepTrace& trace, const WriteRematRequest& request);

struct StepRematRequest {
  std::string name;
  PlanLimits space{};            // with the budget, persistent storages included
  std::vector<Bytes> foreign{};  // storages beside the step's
  std::string output{};          // file for the schedule; empty: none
  planner::Limits limits{};
  std::string method = "default";
};

// Plans the step by one of planner::remat::remat_methods(), prints its time beside that of the
// simulated schedule, and writes the schedule. Returns the exit code: 3 if there is none, 1 if
// that is not known, with the reason and the least budget on standard error. Throws UsageError
// as plan_rematerialization() does.
int plan_step_rematerialization(const StepTrace& trace, const StepRematRequest& request);

}  // namespace tidemark
