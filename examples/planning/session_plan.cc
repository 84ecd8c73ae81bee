#include "examples/planning/session_plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ctime>

#include "examples/common/console.h"
#include "examples/common/output_file.h"
#include "examples/common/program.h"
#include "runtime/core/errors.h"
#include "runtime/planner/pipeline/pipeline.h"
#include "runtime/schedule/schedule_json.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/simulate.h"

namespace tidemark {
namespace {

void print_time(const char* what, Nanos time, Nanos ample) {
  const double share =
      static_cast<double>(time.count()) / static_cast<double>(ample.count()) - 1;
  print_out("{:<24} {:>14.6f} {:>+10.2f} %\n", what, to_ms(time), 100 * share);
}

// Of the processor since `begin`.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

int plan_step_as_session(const StepTrace& step, const SessionPlanRequest& request) {
  const PlanLimits& limits = request.limits;
  print_out("{}: {} operators, {} in program order; budget {}, tiers {}\n", request.name,
            step.ops.size(), format_bytes(program_order_peak(step)), format_bytes(limits.space),
            format_bytes(limits.tier_space));
  std::clock_t begin = std::clock();
  int64_t work = 0;
  const auto plan = planner::plan_step_within(
      step, limits, request.foreign,
      std::min(request.effort, planner::effort_for(total_cost(step))), &work);
  const double planning = seconds_since(begin);
  if (!plan) {
    print_error("plan_graph: the search found no plan within {}\n", format_bytes(limits.space));
    return kOutOfMemory;
  }
  const auto wrong = schedule_violations(step, limits, *plan, 1);
  TIDEMARK_CHECK(wrong.empty(), "a planned schedule is valid: " + wrong.front());
  begin = std::clock();
  Schedule schedule = *plan;
  const auto bounds = planner::bound_time(schedule, step, limits);
  if (bounds) bounds->write_to(schedule);
  print_out("{}, {}{}; {:.1f} M simulated calls in {:.2f} s, bounds in {:.2f} s\n",
            schedule.method,
            in_program_order(schedule) ? "the program's order" : "another order",
            schedule.placed ? "" : ", without addresses", static_cast<double>(work) * 1e-6,
            planning, seconds_since(begin));
  if (schedule.shortfall > Bytes(0)) {
    print_out("short of {}, which a training releases as the step runs\n",
              format_bytes(schedule.shortfall));
  }
  if (!bounds) {
    print_out("{:<24} {:>14.6f}; no bound, as an operator alone needs more than the budget\n",
              "time of a step, ms", to_ms(schedule.time));
  } else {
    print_out("{:<24} {:>14} {:>12}\n", "time of a step", "ms", "longer by");
    print_time("without a limit", bounds->ample, bounds->ample);
    print_time("planned", std::max(planner::time_of_releases(schedule, limits), bounds->ample),
               bounds->ample);
    print_time("no plan in this order", bounds->least, bounds->ample);
    print_time("no plan", bounds->any_order, bounds->ample);
  }
  if (!request.save_schedule.empty())
    write_output(request.save_schedule, to_json(step, schedule));
  return kDone;
}

}  // namespace tidemark
