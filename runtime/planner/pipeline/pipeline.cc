#include "runtime/planner/pipeline/pipeline.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/planner/bounds/any_order_bound.h"
#include "runtime/planner/bounds/least_needs.h"
#include "runtime/planner/bounds/time_bound.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/remat/step_remat.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_from_plan.h"
#include "runtime/planner/validator.h"

namespace tidemark::planner {
namespace {

// A search simulates one call for this much of a step's time. Simulating a call takes a
// fiftieth to a tenth of a microsecond, so a search takes up to about twenty steps' time.
constexpr Nanos kStepPerCall{5};
// A node of a search for an order or a layout takes as long as simulating this many calls.
constexpr int64_t kCallsPerOrderNode = 10;
// The search for recomputation gets this share (1/n) of the effort, and takes a second at most
// (twice that if calls have variants): more gains little.
constexpr int64_t kRematShare = 2;
constexpr int64_t kMaxRematEffort = kThorough / 8;

}  // namespace

int64_t effort_for(Nanos step) {
  return std::clamp(step.count() / kStepPerCall.count(), kQuick, kThorough);
}

Schedule plan_order(const StepTrace& trace, PlannerOptions options, int64_t* work) {
  const Problem problem =
      problem_from_trace(trace, {.residents_apart = true, .in_place = true});
  std::atomic<int64_t> nodes{0};
  options.limits.taken = &nodes;
  const Plan plan = plan_step(problem, options);
  if (work) *work += nodes * kCallsPerOrderNode;
  const auto wrong = violations(problem, plan, 1);
  if (!wrong.empty()) throw std::logic_error("the plan is wrong: " + wrong.front());
  return schedule_from_plan(trace, problem, plan);
}

ReleaseProbes plan_first_releases(const StepTrace& trace, const PlanLimits& limits,
                                  const std::vector<Bytes>& foreign,
                                  const std::vector<uint32_t>& planned, bool reorder,
                                  int64_t effort, int64_t* work,
                                  const std::atomic<bool>* stop) {
  std::vector<std::vector<uint32_t>> orders;
  if (reorder) orders = orders_to_try(trace, limits, foreign, planned);
  return probe_releases(trace, limits, foreign, orders, effort, work, stop);
}

std::optional<Schedule> plan_long(const StepTrace& trace, const PlanLimits& limits,
                                  const std::vector<Bytes>& foreign,
                                  const std::vector<std::vector<uint32_t>>& orders,
                                  int64_t effort, int64_t* work,
                                  const std::atomic<bool>* stop) {
  std::optional<Schedule> best;
  auto found = plan_releases_in_order(trace, limits, foreign, orders, effort, work, stop);
  if (found) best = std::move(found->schedule);
  if (limits.tier_space > Bytes(0)) return best;
  auto again = remat::plan_step_remat(
      trace, limits, foreign, std::min(effort / kRematShare, kMaxRematEffort), work, stop);
  const bool is_quicker =
      again && (!best || time_of_releases(*again, limits) < time_of_releases(*best, limits));
  return is_quicker ? std::move(again) : std::move(best);
}

void TimeBounds::write_to(Schedule& schedule) const {
  schedule.ample_time = ample;
  schedule.time_bound = least;
  schedule.any_order_bound = any_order;
}

std::optional<TimeBounds> bound_time(const Schedule& schedule, const StepTrace& trace,
                                     const PlanLimits& fastest, const std::atomic<bool>* stop) {
  const TimeBoundOptions options{.stop = stop};
  // A call that runs as a variant may precede the producers of its own inputs.
  const StepTrace least = with_least_needs(trace);
  const auto times = in_program_order(schedule)
                         ? time_bound(least, fastest, options)
                         : time_bound(reordered(least, order_of(schedule)), fastest, options);
  if (!times) return std::nullopt;
  const Nanos in_any =
      any_order_bound(trace, fastest, {.looked_at = kLookedAtInAnyOrder, .stop = stop});
  return TimeBounds{ample_time(trace, fastest), std::max(times->least, in_any), in_any};
}

std::optional<Schedule> plan_step_within(const StepTrace& trace, const PlanLimits& limits,
                                         const std::vector<Bytes>& foreign, int64_t effort,
                                         int64_t* work) {
  Bytes taken{0};
  for (const Bytes bytes : foreign) taken += align_up(bytes);
  for (const StepTrace::Storage& storage : trace.storages) {
    if (storage.at_start && storage.at_end) taken += align_up(storage.size);
  }
  std::vector<uint32_t> planned;
  if (why_not_plannable(trace).empty()) {
    Schedule schedule = plan_order(
        trace, {.limits = {.seconds = 1e9, .nodes = kOrderNodes}, .space = limits.space}, work);
    if (taken + schedule.peak <= limits.space) return schedule;
    planned = order_of(schedule);
  }
  ReleaseProbes first =
      plan_first_releases(trace, limits, foreign, planned, true, effort, work);
  std::optional<Schedule> best =
      plan_long(trace, limits, foreign, first.worth_searching, effort, work);
  if (!first.best) return best;
  const bool is_quicker =
      !best || time_of_releases(first.best->schedule, limits) < time_of_releases(*best, limits);
  return is_quicker ? std::move(first.best->schedule) : std::move(best);
}

}  // namespace tidemark::planner
