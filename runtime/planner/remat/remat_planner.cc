#include "runtime/planner/remat/remat_planner.h"

#include <algorithm>

#include "runtime/core/errors.h"
#include "runtime/planner/remat/remat_search.h"
#include "runtime/planner/remat/remat_validator.h"

namespace tidemark::planner::remat {
namespace {

// Shares of the time: of a first search, of the bound then, and of a search without success.
constexpr double kFirstSearch = 0.1, kBound = 0.4, kFutileSearch = 0.6;
constexpr int64_t kQuickBound = 400;  // iterations: enough where nothing is computed again
constexpr int kBisections = 12;
constexpr int64_t kUnlimited = int64_t{1} << 61;

Limits share_of(const Limits& limits, const Stopwatch& watch, double share) {
  Limits result = limits;
  result.seconds = std::max(0.0, std::min(limits.seconds * share, watch.left()));
  if (limits.nodes < std::numeric_limits<int64_t>::max()) {
    result.nodes = static_cast<int64_t>(static_cast<double>(limits.nodes) * share);
  }
  return result;
}

// An invalid schedule is an error of ours, never an answer.
Schedule checked_schedule(const Options& options, const Sequence& sequence) {
  Schedule schedule = to_schedule(options, sequence);
  const Verdict verdict = validate(options.problem(), schedule.events);
  TIDEMARK_CHECK(verdict.fault.empty(), "a schedule failed validation: " + verdict.fault);
  TIDEMARK_CHECK(verdict.peak == schedule.peak && schedule.peak <= options.budget(),
                 "a schedule's peak is the one that the search computed");
  schedule.time = verdict.time;
  return schedule;
}

}  // namespace

RematPlan plan_remat(const Problem& problem, int64_t budget, const RematOptions& options) {
  const Stopwatch watch(options.limits);
  RematPlan plan;
  const Options all(problem, budget);
  plan.feasible = budget >= bound_budget(problem) && ForcedRuns(all).possible();
  if (!plan.feasible) {
    plan.seconds = watch.seconds();
    return plan;
  }
  BoundOptions quick;
  quick.limits = options.limits;
  quick.limits.nodes = kQuickBound;
  const TimeBound first = bound_time(all, quick);
  plan.bound = first.time;
  plan.feasible = first.feasible;
  if (!plan.feasible) {
    plan.seconds = watch.seconds();
    return plan;
  }
  SearchOptions search;
  search.limits = share_of(options.limits, watch, kFirstSearch);
  search.bound = plan.bound;
  SearchResult found = search_schedule(all, search);
  if (!found.found()) {
    search.limits = share_of(options.limits, watch, kFutileSearch - kFirstSearch);
    search.first_only = true;
    search.limits.seed += 1;
    found = search_schedule(all, search);
  }
  if (found.found()) {
    BoundOptions bound;
    bound.limits = share_of(options.limits, watch, kBound);
    bound.enough = found.time;
    bound.integer = options.integer;
    if (plan.bound < found.time) plan.bound = std::max(plan.bound, bound_time(all, bound).time);
    search.limits = share_of(options.limits, watch, 1 - kFirstSearch - kBound);
    search.limits.seconds = watch.left();
    search.first_only = false;
    search.bound = plan.bound;
    search.starts = found.starts;
    found = search_schedule(all, search);
    plan.schedule = checked_schedule(all, found.sequence);
    plan.bound = std::min(plan.bound, plan.schedule.time);
  }
  plan.seconds = watch.seconds();
  return plan;
}

LeastBudget find_least_budget(const Problem& problem, const Limits& limits) {
  const Stopwatch watch(limits);
  LeastBudget least;
  least.bound = bound_budget(problem);
  const auto attempt = [&](int64_t budget, double share) {
    const Options options(problem, budget);
    SearchOptions search;
    search.limits = share_of(limits, watch, share);
    search.first_only = true;
    const SearchResult result = search_schedule(options, search);
    if (!result.found()) return false;
    const int64_t peak = checked_schedule(options, result.sequence).peak;
    least.found = least.found == 0 ? peak : std::min(least.found, peak);
    return true;
  };
  if (attempt(least.bound, 0.2) || !attempt(kUnlimited, 0.2)) return least;
  int64_t low = least.bound;
  for (int k = 0; k < kBisections && !watch.expired() && low < least.found; ++k) {
    const int64_t middle = low + (least.found - low) / 2;
    if (!attempt(middle, 0.6 / kBisections)) low = middle + 1;
  }
  return least;
}

}  // namespace tidemark::planner::remat
