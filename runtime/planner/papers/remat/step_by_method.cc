#include "runtime/planner/papers/remat/step_by_method.h"

#include <algorithm>
#include <iterator>

#include "runtime/core/errors.h"
#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/step_schedule.h"
#include "runtime/schedule/schedule_validator.h"

namespace tidemark::planner::remat {

StepByMethod plan_step_by(const RematMethod& method, const StepTrace& trace,
                          const PlanLimits& space, const std::vector<Bytes>& foreign,
                          const Limits& limits) {
  const StepProblem step = problem_from_step(trace, {.riders = method.knows_riders});
  check_problem(step.problem);
  int64_t budget = space.space.count();
  for (const Bytes size : foreign) budget -= size.count();
  StepByMethod made;
  double seconds = 0;
  for (const double margin : kMargins) {
    made.margin = share_of(space.space, margin);
    const int64_t within = budget - made.margin.count();
    Limits left = limits;
    left.seconds = std::max(limits.seconds - seconds, 0.0);
    if (margin != *std::rbegin(kMargins)) left.seconds /= 2;
    made.result = method.plan(step.problem, within, left);
    seconds = made.result.seconds += seconds;
    if (!made.result.fits(within)) {
      const std::string beyond = "the schedule takes " +
                                 format_bytes(Bytes(made.result.schedule.peak)) +
                                 ", more than the budget";
      const std::string& note = made.result.note;
      const std::string why = made.result.found() ? beyond
                              : note.empty()      ? "no schedule"
                                                  : note;
      made.why_not = margin == 0 ? why : made.why_not + "; with a margin: " + why;
      return made;
    }
    StepSchedule decoded =
        schedule_from_runs(trace, step, made.result.schedule.events, space, foreign);
    made.why_not = decoded.why_not;
    if (!decoded.schedule) {
      if (decoded.load == Bytes(0)) return made;  // less memory would not mend it
      continue;
    }
    decoded.schedule->method = method.name;
    const auto faults = schedule_violations(trace, space, *decoded.schedule, 1);
    TIDEMARK_CHECK(faults.empty(), "a decoded schedule failed validation: " + faults.front());
    made.schedule = std::move(decoded.schedule);
    return made;
  }
  return made;
}

}  // namespace tidemark::planner::remat
