#include "runtime/planner/remat/step_remat.h"

#include <algorithm>
#include <utility>

#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_bound.h"
#include "runtime/planner/remat/remat_search.h"
#include "runtime/planner/remat/step_schedule.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/simulate.h"

namespace tidemark::planner::remat {
namespace {

// An evaluation of a sequence takes as long as simulating this share (1/n) of the step's calls.
constexpr int64_t kEvaluationShare = 4;

std::optional<tidemark::Schedule> plan_problem(const StepTrace& trace, const StepProblem& step,
                                               const PlanLimits& limits,
                                               const std::vector<Bytes>& foreign,
                                               int64_t effort, int64_t* work,
                                               const std::atomic<bool>* stop) {
  Bytes space = limits.space;
  for (const Bytes size : foreign) space -= size;
  const int64_t calls = std::max<int64_t>(step.problem.size() / kEvaluationShare, 1);
  SearchOptions search;
  search.limits.seconds = 1e9;
  search.limits.nodes = effort / calls;
  search.limits.stop = stop;
  const int64_t least = bound_budget(step.problem);
  for (const double margin : kMargins) {
    const int64_t budget = (space - share_of(limits.space, margin)).count();
    if (budget < least) return std::nullopt;
    const Options options(step.problem, budget);
    const SearchResult found = search_schedule(options, search);
    if (work) *work += found.evaluations * calls;
    if (!found.found() || (stop && stop->load(std::memory_order_relaxed))) return std::nullopt;
    StepSchedule made = schedule_from_runs(
        trace, step, to_schedule(options, found.sequence).events, limits, foreign);
    if (made.schedule) {
      const ScheduleCost cost = simulate(trace, limits, *made.schedule);
      made.schedule->time = cost.time + time_between_steps(*made.schedule, limits);
      made.schedule->recomputed = cost.recomputed;
      made.schedule->method = "recomputation found by a search";
      return std::move(made.schedule);
    }
    if (made.load == Bytes(0)) return std::nullopt;  // less memory would not mend it
    // Starts of this budget are no use: a smaller one may number its options otherwise.
    search.limits.nodes /= 2;
  }
  return std::nullopt;
}

}  // namespace

std::optional<tidemark::Schedule> plan_step_remat(const StepTrace& trace,
                                                  const PlanLimits& limits,
                                                  const std::vector<Bytes>& foreign,
                                                  int64_t effort, int64_t* work,
                                                  const std::atomic<bool>* stop) {
  const auto plan = [&](bool variants) {
    const StepProblem step = problem_from_step(trace, {.variants = variants});
    return plan_problem(trace, step, limits, foreign, effort, work, stop);
  };
  auto best = plan(false);
  const bool has_variants = std::any_of(trace.ops.begin(), trace.ops.end(),
                                        [](const auto& op) { return !op.variants.empty(); });
  if (!has_variants) return best;
  auto other = plan(true);
  return other && (!best || other->time < best->time) ? std::move(other) : std::move(best);
}

}  // namespace tidemark::planner::remat
