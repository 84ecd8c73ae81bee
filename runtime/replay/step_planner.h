// Lets a session run by plans, by itself: records each step, plans one that comes twice in a
// row in the background, and from the next step's beginning on follows the plan.
//
//   Session session({...});
//   plan_steps(session);
//   for (...) session.step([&] { ... });     // nothing else changes
//
// Plans are kept, one for each program, up to sixteen: the smaller last batch of an epoch has
// its own, as steps that follow a plan do not count between two that are recorded. Which one a
// step follows is decided by its first operator or upload. A step that turns out otherwise is
// finished under the policy, and the next one is recorded again.
//
// A plan is made use of if what lives on and the plan's peak fit into the budget. Where they do
// not, a step is recorded with what the policy releases, once that has settled, and steps like
// it are run by that: the same releases, at fixed places (planned_memory.h). Should they take
// longer so than under the policy, that decides again.
//
// Threads: the session's issuing thread; planning has one of its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/planner/planner.h"
#include "runtime/replay/planned_step.h"
#include "runtime/session/session.h"

namespace tidemark {

struct PlanOptions {
  planner::PlannerOptions planner{.limits = {.seconds = 2}};
  // Off: the session waits for the plan at the end of the step; for tests and for comparisons.
  bool background = true;
  // How much longer than under the policy a step may take by a plan that releases.
  double bearable = 1.02;
  // Told what happens, a line each: a step planned, a plan not used and why, a mismatch. Null:
  // the log.
  std::function<void(std::string_view)> report{};
};

struct PlanCounts {
  int64_t planned_steps = 0;  // run by a plan from beginning to end
  int64_t mismatches = 0;
  int64_t plans = 0;
};

// From the next step on. Only between steps.
void plan_steps(Session& session, PlanOptions options = {});
// REQUIRES: plan_steps() was called for it.
const PlanCounts& plan_counts(const Session& session);
// The last plan that was followed or made; null if there is none yet.
const PlannedStep* current_plan(const Session& session);

// Runs `step` in the session and records it.
StepTrace record_step(Session& session, const std::function<void()>& step);

}  // namespace tidemark
