#include "runtime/planner/papers/methods.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/passes.h"
#include "runtime/planner/papers/olla/olla.h"
#include "runtime/planner/papers/roam_programs.h"
#include "runtime/planner/roam/roam.h"

namespace tidemark::planner {
namespace {

// "LESCEA, best fit" -> "lescea-best-fit"
std::string flag_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  return result;
}

Method default_method() {
  Method method;
  method.name = "default";
  method.what = "search for the order, then for the layout";
  method.plan = plan_step;
  method.order = plan_order;
  method.layout = plan_layout;
  method.searches = method.may_be_in_place = true;
  return method;
}

Method from_baseline(const Baseline& baseline) {
  Method method;
  method.name = flag_name(baseline.name);
  method.what = baseline.name;
  method.baseline = true;
  method.may_be_in_place = baseline.in_place;
  method.plan = [make = baseline.plan](const Problem& problem, const PlannerOptions&) {
    check_problem(problem);
    Plan plan = make(problem);
    plan.bound = load_bound(problem);
    return plan;
  };
  return method;
}

// Program order, and the heuristic's offsets.
Method from_heuristic(const Heuristic& heuristic) {
  Method method;
  method.what = std::string("program order, ") + heuristic.name;
  method.name = flag_name(method.what);
  method.baseline = true;
  method.plan = [&heuristic, name = method.what](const Problem& problem,
                                                 const PlannerOptions&) {
    check_problem(problem);
    Plan plan = assemble(problem, program_order(problem), false, heuristic.place);
    plan.method = name;
    plan.bound = load_bound(problem);
    return plan;
  };
  method.layout = [&heuristic](const std::vector<Buffer>& buffers, const LayoutOptions&) {
    check_buffers(buffers);
    Layout layout;
    layout.offsets = heuristic.place(buffers);
    layout.height = height(buffers, layout.offsets);
    layout.bound = max_load(buffers);
    layout.method = heuristic.name;
    return layout;
  };
  return method;
}

// The rule's order, and best fit's offsets.
Method from_rule(const OrderRule& rule) {
  Method method;
  method.what = std::string(rule.name) + ", best fit";
  method.name = flag_name(method.what);
  method.baseline = true;
  method.plan = [&rule, name = method.what](const Problem& problem, const PlannerOptions&) {
    check_problem(problem);
    Plan plan = assemble(problem, rule.order(OrderGraph(problem)), false, best_fit_online);
    plan.method = name;
    plan.bound = load_bound(problem);
    return plan;
  };
  method.order = [&rule](const Problem& problem, const OrderOptions&) {
    Order order;
    order.order = rule.order(OrderGraph(problem));
    order.load = peak_load(problem, order.order);
    order.bound = load_bound(problem);
    order.method = rule.name;
    return order;
  };
  return method;
}

Method from_ablation(const roam::Ablation& ablation) {
  Method method;
  method.name = ablation.name;
  method.what = ablation.what;
  method.baseline = true;
  method.searches = method.takes_roam_parameters = true;
  method.may_be_in_place = ablation.name == std::string("roam-in-place");
  method.plan = [&ablation](const Problem& problem, const MethodOptions& options) {
    return roam::roam_without(ablation, problem, options, options.roam);
  };
  return method;
}

Method roam_method() {
  Method method;
  method.name = "roam";
  method.what = "ROAM: subgraphs planned one by one, each by our exact search";
  method.searches = method.takes_roam_parameters = true;
  method.plan = [](const Problem& problem, const MethodOptions& options) {
    return roam::roam_method(problem, options, options.roam);
  };
  return method;
}

Method roam_by_programs(const char* name, const char* what, roam::Streams streams) {
  Method method;
  method.name = name;
  method.what = what;
  method.needs_solver = method.takes_roam_parameters = true;
  method.plan = [streams](const Problem& problem, const MethodOptions& options) {
    roam::RoamOptions mine;
    mine.leaves = roam::program_leaves(streams, require_solver());
    mine.divide_time = true;
    Plan plan = roam::roam_method(problem, options, options.roam, mine);
    plan.method += ", integer programs";
    return plan;
  };
  return method;
}

// `share`: of the deadline, if not all of it was for this.
[[noreturn]] void fail_olla(const std::string& what, double seconds, const olla::Report& report,
                            const std::string& share = "") {
  const std::string why = report.note.empty() ? "" : ": " + report.note;
  if (report.solver.empty()) throw Error("[olla] no " + what + why);
  std::string limit = std::to_string(seconds);
  limit.resize(limit.find('.') + 2);
  throw Error("[olla] the solver found no " + what + " within " + limit + " s" + share + why);
}

// `given`: which of the paper's parts, and which of ours. Without a start of ours, results are
// called as published.
Method olla_method(std::string name, std::string what, const olla::Options& given) {
  Method method;
  method.name = std::move(name);
  method.what = std::move(what);
  method.needs_solver = true;
  method.may_be_in_place = given.in_place;
  method.restriction =
      "OLLA's orders keep control edges for early updates (section 4.3 of the paper); a "
      "baseline's need not";
  const std::string suffix = given.start ? "" : " as published";
  method.plan = [given, suffix](const Problem& problem, const PlannerOptions& options) {
    olla::Options all = given;
    all.limits = options.limits;
    all.reorder = options.reorder;
    all.in_place = given.in_place && options.in_place;
    olla::PlanResult result = olla::plan(problem, all);
    if (!result.plan && result.locations.solver.empty() && result.locations.note.empty()) {
      fail_olla("order", options.limits.seconds / 2, result.lifetimes,
                ", half of the deadline");
    }
    if (!result.plan) fail_olla("places", options.limits.seconds, result.locations);
    result.plan->method += suffix;
    return *result.plan;
  };
  method.order = [given, suffix](const Problem& problem, const OrderOptions& options) {
    olla::Options all = given;
    all.limits = options.limits;
    olla::OrderResult result = olla::order(problem, all);
    if (!result.order) fail_olla("order", options.limits.seconds, result.report);
    result.order->method += suffix;
    return *result.order;
  };
  method.layout = [given, suffix](const std::vector<Buffer>& buffers,
                                  const LayoutOptions& options) {
    olla::Options all = given;
    all.limits = options.limits;
    olla::LayoutResult result = olla::layout(buffers, all);
    if (!result.layout) fail_olla("places", options.limits.seconds, result.report);
    result.layout->method += suffix;
    return *result.layout;
  };
  return method;
}

// A baseline may be the same plan: then it only gains the half.
void add(Method method, std::vector<Method>& all) {
  const auto same = std::find_if(all.begin(), all.end(),
                                 [&](const Method& m) { return m.name == method.name; });
  if (same == all.end()) {
    all.push_back(std::move(method));
    return;
  }
  if (method.order) same->order = std::move(method.order);
  if (method.layout) same->layout = std::move(method.layout);
}

std::vector<Method> all_methods() {
  std::vector<Method> all = {
      default_method(),
      olla_method("olla", "OLLA's integer programs, with our start and bounds; needs a solver",
                  olla::Options()),
      olla_method("olla-published", "OLLA as the paper has it; needs a solver",
                  olla::published()),
      roam_method(),
      roam_by_programs("roam-ilp",
                       "the same by integer programs, with our start and bound; needs a solver",
                       roam::Streams::kOne),
      roam_by_programs("roam-multi-stream",
                       "the same with operators of one timestep side by side; needs a solver",
                       roam::Streams::kSeveral),
  };
  for (const Baseline& baseline : baselines()) all.push_back(from_baseline(baseline));
  for (const Heuristic& heuristic : kHeuristics) add(from_heuristic(heuristic), all);
  for (const OrderRule& rule : kOrderRules) add(from_rule(rule), all);
  for (const roam::Ablation& ablation : roam::ablations()) {
    all.push_back(from_ablation(ablation));
  }
  return all;
}

}  // namespace

const std::vector<Method>& methods() {
  static const auto* const all = new std::vector<Method>(all_methods());
  return *all;
}

const Method* find_method(const std::string& name) {
  const std::vector<Method>& all = methods();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Method& m) { return m.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace tidemark::planner
