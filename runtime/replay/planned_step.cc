#include "runtime/replay/planned_step.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/validator.h"

namespace tidemark {

namespace {

void require_plannable(const StepTrace& graph) {
  if (const std::string reason = why_not_plannable(graph); !reason.empty()) {
    throw UsageError("this step cannot be planned: " + reason);
  }
}

}  // namespace

PlannedStep plan_releasing_step(StepTrace graph, MemoryTrace trace, Bytes capacity,
                                const LinkRates& links, const planner::Limits& limits) {
  require_plannable(graph);
  const planner::Stopwatch watch(limits.seconds);
  PlannedStep step;
  step.memory = plan_memory(graph, std::move(trace), capacity, links, limits);
  step.peak = step.memory->peak;
  step.bound = step.memory->load;
  step.seconds = watch.seconds();
  step.method = "as the policy released";
  step.graph = std::move(graph);
  return step;
}

PlannedStep plan_captured_step(StepTrace graph, const planner::PlannerOptions& options) {
  require_plannable(graph);
  const planner::Problem problem =
      planner::problem_from_trace(graph, {.residents_apart = true});
  const planner::Plan plan = planner::plan_step(problem, options);
  if (const auto wrong = planner::violations(problem, plan, 1); !wrong.empty()) {
    throw UsageError("the plan is wrong: " + wrong.front());
  }
  PlannedStep step;
  step.order.assign(plan.order.begin(), plan.order.end());
  step.in_program_order = std::is_sorted(step.order.begin(), step.order.end());
  step.storage_at.resize(graph.storages.size());
  step.workspace_at.resize(graph.ops.size());
  for (const planner::Placement& placement : plan.placements) {
    if (placement.size == Bytes(0)) continue;
    const Bytes at = placement.offset - Offset(0);
    if (placement.workspace_of != planner::kNone) {
      step.workspace_at[static_cast<size_t>(placement.workspace_of)] = at;
    } else {
      step.storage_at[static_cast<size_t>(placement.storage)] = at;
    }
  }
  step.peak = plan.peak;
  step.bound = plan.bound;
  step.seconds = plan.seconds;
  step.method = plan.method;
  step.graph = std::move(graph);
  return step;
}

}  // namespace tidemark
