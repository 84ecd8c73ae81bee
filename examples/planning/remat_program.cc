#include "examples/planning/remat_program.h"

#include <algorithm>

#include "examples/common/bundled.h"
#include "examples/common/console.h"
#include "examples/common/output_file.h"
#include "examples/common/program.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/io/remat_json.h"
#include "runtime/planner/papers/remat/integer_bound.h"
#include "runtime/planner/remat/remat_planner.h"

namespace tidemark {
namespace {

using planner::remat::LeastBudget;
using planner::remat::Problem;
using planner::remat::RematPlan;

std::string in_bytes(int64_t bytes) {
  return std::to_string(bytes) + " bytes (" + format_bytes(Bytes(bytes)) + ")";
}

void print_plan(const Problem& problem, const RematPlan& plan, const std::string& unit) {
  print_out("{:>14} {:>10} {:>10} {:>14} {:>9} {:>9} {:>16}\n", "time" + unit, "ratio", "peak",
            "bound" + unit, "gap", "seconds", "peak in bytes");
  print_out("{:>14.6f} {:>10.6f} {:>10} {:>14.6f} {:>8.4f}% {:>9.3f} {:>16}\n",
            plan.schedule.time, plan.schedule.time / problem.base_time,
            format_bytes(Bytes(plan.schedule.peak)), plan.bound, 100 * plan.gap(), plan.seconds,
            plan.schedule.peak);
}

int explain_least_budget(const RematRequest& request, const Problem& problem,
                         const RematPlan& plan) {
  planner::Limits limits = request.limits;
  limits.seconds = std::max(limits.seconds - plan.seconds, 0.0);
  const LeastBudget least = find_least_budget(problem, limits);
  print_error("plan_graph: {} {}\n",
              plan.feasible ? "no schedule was found within" : "no schedule fits in",
              in_bytes(request.budget.count()));
  if (least.found > 0 && least.proven()) {
    print_error("plan_graph: the least budget is {}\n", in_bytes(least.found));
  } else {
    print_error("plan_graph: no budget below {} suffices\n", in_bytes(least.bound));
    if (least.found > 0) {
      print_error("plan_graph: the least budget found is {}; it may not be the least\n",
                  in_bytes(least.found));
    }
  }
  return kOutOfMemory;
}

}  // namespace

int plan_rematerialization(const RematRequest& request) {
  const Problem problem = planner::parse_remat_problem(
      read_text_file(given_or_bundled(request.problem)), request.problem);
  planner::remat::RematOptions options;
  options.limits = request.limits;
  options.integer = planner::integer_bound();
  const RematPlan plan = plan_remat(problem, request.budget.count(), options);
  print_out("{}: {} nodes, budget {}\n", problem.name.empty() ? request.problem : problem.name,
            problem.nodes.size(), in_bytes(request.budget.count()));
  if (!plan.found()) return explain_least_budget(request, problem, plan);
  print_plan(problem, plan, problem.unit_time.empty() ? "" : ", " + problem.unit_time);
  if (!request.output.empty()) {
    write_output(request.output,
                 planner::format_remat_schedule(
                     plan.schedule, {request.budget.count(), plan.bound, plan.seconds}));
  }
  return kDone;
}

}  // namespace tidemark
