#include "examples/planning/remat_program.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "examples/common/bundled.h"
#include "examples/common/console.h"
#include "examples/common/output_file.h"
#include "examples/common/program.h"
#include "runtime/core/errors.h"
#include "runtime/core/listed.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/io/remat_json.h"
#include "runtime/planner/io/remat_problem_json.h"
#include "runtime/planner/papers/remat/integer_bound.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/papers/remat/step_by_method.h"
#include "runtime/planner/pipeline/pipeline.h"
#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/remat_planner.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/schedule_json.h"
#include "runtime/schedule/simulate.h"

namespace tidemark {
namespace {

using planner::remat::LeastBudget;
using planner::remat::PlannedRun;
using planner::remat::Problem;
using planner::remat::RematMethod;
using planner::remat::RematPlan;
using planner::remat::RematResult;

// Budgets of a written problem, as shares of what keeping everything takes above fixed bytes.
constexpr double kShares[] = {0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3};

constexpr size_t kMaxNamed = 4;  // nodes that a line names

std::string in_bytes(int64_t bytes) {
  return std::to_string(bytes) + " bytes (" + format_bytes(Bytes(bytes)) + ")";
}

std::string unit_of(const Problem& problem) {
  return problem.unit_time.empty() ? "" : ", " + printable(problem.unit_time);
}

// Nodes that the schedule leaves out, and that only the file's author can have meant to run.
void print_unneeded(const Problem& problem, const planner::remat::Schedule& schedule) {
  std::vector<planner::remat::NodeId> left = unneeded_nodes(problem);
  std::erase_if(left, [&](planner::remat::NodeId i) {
    return std::any_of(schedule.events.begin(), schedule.events.end(),
                       [&](const auto& event) { return event.is_run() && event.node == i; });
  });
  if (left.empty()) return;
  std::vector<std::string> names;
  for (const planner::remat::NodeId i : left) {
    const std::string& name = problem.nodes[i].name;
    names.push_back(name.empty() ? fmt::format("nodes[{}]", i) : printable(name));
    if (names.size() == kMaxNamed) break;
  }
  if (left.size() > names.size()) names.emplace_back("...");
  print_out(
      "{}, as no required node needs {}: {}\n",
      left.size() == 1 ? "1 node never runs" : fmt::format("{} nodes never run", left.size()),
      left.size() == 1 ? "it" : "them", listed(names));
}

void print_plan(const Problem& problem, const RematPlan& plan) {
  print_unneeded(problem, plan.schedule);
  const std::string unit = unit_of(problem);
  print_out("{:>14} {:>10} {:>10} {:>14} {:>9} {:>9} {:>16}\n", "time" + unit, "ratio", "peak",
            "bound" + unit, "gap", "seconds", "peak in bytes");
  print_out("{:>14.6f} {:>10.6f} {:>10} {:>14.6f} {:>8.4f}% {:>9.3f} {:>16}\n",
            plan.schedule.time, plan.schedule.time / problem.base_time,
            format_bytes(Bytes(plan.schedule.peak)), plan.bound, 100 * plan.gap(), plan.seconds,
            plan.schedule.peak);
}

// Of a search that ended without an answer; bench/remat_methods.py looks for it.
constexpr char kNotProven[] = "; that none fits is not proven";

LeastBudget least_budget(const Problem& problem, planner::Limits limits, double spent) {
  limits.seconds = std::max(limits.seconds - spent, 0.0);
  return find_least_budget(problem, limits);
}

void print_least_budget(const LeastBudget& least) {
  if (least.found > 0 && least.proven()) {
    print_error("plan_graph: the least budget is {}\n", in_bytes(least.found));
  } else {
    print_error("plan_graph: no budget below {} suffices\n", in_bytes(least.bound));
    if (least.found > 0) {
      print_error("plan_graph: the least budget found is {}; it may not be the least\n",
                  in_bytes(least.found));
    }
  }
}

void print_program(const RematResult& result) {
  if (result.variables == 0) return;
  print_out("program: {} variables, {} rows; {}\n", result.variables, result.rows,
            planner::to_string(result.status));
}

void print_result(const Problem& problem, const RematResult& result) {
  const std::string unit = unit_of(problem);
  print_program(result);
  if (!result.found()) return;
  if (result.own_bound <= 0) {
    print_out(
        "the method has no bound of its own; --method default bounds any schedule's time\n");
  }
  print_unneeded(problem, result.schedule);
  print_out("{:>14} {:>10} {:>10} {:>14} {:>9} {:>16}\n", "time" + unit, "ratio", "peak",
            "own bound", "seconds", "peak in bytes");
  print_out("{:>14.6f} {:>10.6f} {:>10} {:>14} {:>9.3f} {:>16}\n", result.schedule.time,
            result.schedule.time / problem.base_time, format_bytes(Bytes(result.schedule.peak)),
            result.own_bound > 0 ? fmt::format("{:.6f}", result.own_bound) : "-",
            result.seconds, result.schedule.peak);
}

// A method of a paper. Its own bound holds for its own kind of schedules only, so the file
// states none.
int plan_by(const RematMethod& method, const RematRequest& request, const Problem& problem) {
  const RematResult result = method.plan(problem, request.budget.count(), request.limits);
  print_out("{}: {}\n", method.name, method.what);
  print_result(problem, result);
  if (result.found() && !request.output.empty()) {
    write_output(request.output,
                 planner::format_remat_schedule(
                     result.schedule, {request.budget.count(), result.bound, result.seconds}));
  }
  if (result.undecided) {
    print_error("plan_graph: {}: {}{}\n", method.name, result.note, kNotProven);
    return kFailed;
  }
  if (!result.note.empty()) print_error("plan_graph: {}: {}\n", method.name, result.note);
  if (result.fits(request.budget.count())) return kDone;
  if (result.found()) {
    print_error("plan_graph: {}: the schedule takes {}, more than the budget\n", method.name,
                in_bytes(result.schedule.peak));
  }
  return kOutOfMemory;
}

// Rows with what no schedule in that space takes less than that copies nothing: in the order of
// this one, and in any. Also noted in the schedule. `base`: milliseconds.
void print_bounds(const StepTrace& trace, PlanLimits space, double base,
                  tidemark::Schedule& schedule) {
  space.tier_space = Bytes(0);
  const auto bounds = planner::bound_time(schedule, trace, space);
  if (!bounds) return;
  bounds->write_to(schedule);
  const auto row = [&](const char* what, Nanos time) {
    print_out("{:>18} {:>14.6f} {:>10.6f}\n", what, to_ms(time), to_ms(time) / base);
  };
  row("none in this order", bounds->least);
  row("none at all", bounds->any_order);
  print_out(
      "none: no schedule that copies nothing takes less, uploads included, whatever it "
      "computes again\n");
}

const RematMethod& method_named(const std::string& name) {
  const RematMethod* const method = planner::remat::find_remat_method(name);
  if (method != nullptr) return *method;
  std::string known;
  for (const RematMethod& each : planner::remat::remat_methods()) known += " " + each.name;
  throw UsageError("--method " + name + " plans no rematerialisation; there are" + known);
}

}  // namespace

int plan_rematerialization(const RematRequest& request) {
  const RematMethod& method = method_named(request.method);
  const Problem problem = planner::parse_remat_problem(
      read_text_file(given_or_bundled(request.problem)), request.problem);
  const std::string name = printable(problem.name.empty() ? request.problem : problem.name);
  const auto print_problem = [&] {
    print_out("{}: {} nodes, budget {}\n", name, problem.nodes.size(),
              in_bytes(request.budget.count()));
  };
  if (&method != &planner::remat::remat_methods()[0]) {
    print_problem();
    return plan_by(method, request, problem);
  }
  planner::remat::RematOptions options;
  options.limits = request.limits;
  options.integer = planner::integer_bound();
  const RematPlan plan = plan_remat(problem, request.budget.count(), options);
  print_problem();
  if (!plan.found()) {
    const LeastBudget least = least_budget(problem, request.limits, plan.seconds);
    const bool undecided = plan.feasible && least.bound <= request.budget.count();
    print_error("plan_graph: {} {}{}\n",
                undecided ? "no schedule was found within" : "no schedule fits in",
                in_bytes(request.budget.count()), undecided ? kNotProven : "");
    print_least_budget(least);
    return undecided ? kFailed : kOutOfMemory;
  }
  print_plan(problem, plan);
  if (!request.output.empty()) {
    write_output(request.output,
                 planner::format_remat_schedule(
                     plan.schedule, {request.budget.count(), plan.bound, plan.seconds}));
  }
  return kDone;
}

void write_rematerialization_problem(const StepTrace& trace, const WriteRematRequest& request) {
  const planner::remat::StepProblem step =
      planner::remat::problem_from_step(trace, {.in_place = request.in_place,
                                                .variants = request.variants,
                                                .workspace = request.workspace,
                                                .recompute = request.recompute});
  Problem problem = step.problem;
  int64_t offered = 0;
  for (const std::vector<uint32_t>& variants : step.variant_of) {
    // In place or not, a variant is one implementation; the first is the call itself.
    offered += std::ssize(std::set(variants.begin(), variants.end())) - 1;
  }
  problem.name = request.name;
  check_problem(problem);
  std::vector<PlannedRun> runs;
  runs.reserve(problem.nodes.size());
  for (planner::remat::NodeId i = 0; i < problem.size(); ++i) runs.push_back({i, 0});
  const int64_t keep_all = schedule_runs(problem, runs).peak;
  std::vector<int64_t> budgets;
  for (const double share : kShares) {
    const auto above = static_cast<double>(keep_all - problem.fixed_bytes);
    budgets.push_back(problem.fixed_bytes + static_cast<int64_t>(share * above));
  }
  write_output(request.file, planner::format_remat_problem(problem, budgets));
  print_out("{}: {} nodes, {} fixed, {} keeping everything\n", request.name,
            problem.nodes.size(), format_bytes(Bytes(problem.fixed_bytes)),
            format_bytes(Bytes(keep_all)));
  if (request.variants)
    print_out("{} variants of operators that give the same bits\n", offered);
}

int plan_step_rematerialization(const StepTrace& trace, const StepRematRequest& request) {
  const RematMethod& method = method_named(request.method);
  const planner::remat::StepByMethod made =
      plan_step_by(method, trace, request.space, request.foreign, request.limits);
  print_out("{}: {} operators, budget {}\n", request.name, trace.ops.size(),
            in_bytes(request.space.space.count()));
  print_out("{}: {}\n", method.name, method.what);
  print_program(made.result);
  if (!made.schedule) {
    const LeastBudget least = least_budget(planner::remat::problem_from_step(trace).problem,
                                           request.limits, made.result.seconds);
    const bool undecided = made.result.undecided && least.bound <= request.space.space.count();
    print_error("plan_graph: {}: {}{}\n", method.name, made.why_not,
                undecided ? kNotProven : "");
    print_error("plan_graph: schedules that compute again, and copy nothing:\n");
    print_least_budget(least);
    return undecided ? kFailed : kOutOfMemory;
  }
  tidemark::Schedule schedule = *made.schedule;
  const ScheduleCost cost = simulate(trace, request.space, schedule);
  schedule.time = cost.time + planner::time_between_steps(schedule, request.space);
  const double base = to_ms(total_cost(trace));
  print_out("{:>18} {:>14} {:>10} {:>16} {:>16}\n", "", "time, ms", "ratio", "peak in bytes",
            "margin in bytes");
  print_out("{:>18} {:>14.6f} {:>10.6f} {:>16} {:>16}\n", "planned", made.result.schedule.time,
            made.result.schedule.time / base, made.result.schedule.peak, made.margin.count());
  print_out("{:>18} {:>14.6f} {:>10.6f} {:>16}\n", "simulated", to_ms(cost.time),
            to_ms(cost.time) / base, schedule.peak.count());
  print_bounds(trace, request.space, base, schedule);
  print_out("ratio: to {:.6f} ms of operators, each once, without uploads, copies or moves\n",
            base);
  print_out(
      "{:.6f} ms computed again, {:.6f} ms waiting for uploads and copies, {:.6f} ms moving\n",
      to_ms(cost.recomputed), to_ms(cost.waited),
      to_ms(request.space.move_time(schedule.moved)));
  if (!request.output.empty()) write_output(request.output, to_json(trace, schedule));
  return kDone;
}

}  // namespace tidemark
