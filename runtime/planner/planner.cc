#include "runtime/planner/planner.h"

#include <algorithm>
#include <utility>

#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/roam/roam.h"

namespace tidemark::planner {
namespace {

// Baselines cost a few milliseconds each up to here; from there on best fit stands for them.
constexpr size_t kMaxOpsForAllBaselines = 50'000;

// The exact search mostly ends at once, or not in any time.
constexpr double kFirstLayoutShare = 0.25;

roam::RoamOptions roam_options(const PlannerOptions& options, double seconds) {
  roam::RoamOptions roam;
  roam.limits.seconds = std::max(0.0, seconds);
  roam.limits.nodes = std::min(roam.limits.nodes, options.limits.nodes);
  roam.limits.seed = options.limits.seed;
  roam.in_place = options.in_place;
  roam.threads = 1;  // a step may be training meanwhile
  return roam;
}

// With the order as it is, no plan is below the load that it forces.
Bytes bound_in_order(const Problem& problem, const std::vector<OpId>& order, bool in_place) {
  return assemble(problem, order, in_place,
                  [](const std::vector<Buffer>& buffers) { return Offsets(buffers.size()); })
      .load;
}

}  // namespace

Plan plan_step(const Problem& problem, const PlannerOptions& options) {
  check_problem(problem);
  const Stopwatch watch(options.limits.seconds);
  Limits limits = options.limits;

  std::vector<OpId> order = program_order(problem);
  Bytes bound;
  std::string method = "program order";
  if (options.reorder) {
    limits.seconds = options.limits.seconds / 2;
    Order found = plan_order(problem, {limits});
    order = std::move(found.order);
    bound = found.bound;
    method = found.method;
  } else {
    bound = bound_in_order(problem, order, options.in_place);
  }

  bool ran_out_of_time = false;
  const auto lay_out = [&](double share) {
    limits.seconds = std::max(0.0, watch.left() * share);
    std::string layout_method;
    Plan plan =
        assemble(problem, order, options.in_place, [&](const std::vector<Buffer>& buffers) {
          Layout layout = plan_layout(buffers, {limits});
          layout_method = layout.method;
          ran_out_of_time = !layout.optimal() && layout.nodes < limits.nodes;
          return std::move(layout.offsets);
        });
    plan.method = method + ", " + layout_method;
    return plan;
  };
  Plan best = lay_out(kFirstLayoutShare);
  const auto offer = [&](Plan plan) {
    if (plan.peak < best.peak) best = std::move(plan);
  };
  if (best.peak > best.load) {
    // What is too much in one piece may do by subgraphs.
    Plan by_subgraphs =
        roam::roam_layout(problem, order, roam_options(options, watch.left() / 3));
    by_subgraphs.method = method + ", ROAM's layout";
    offer(std::move(by_subgraphs));
    if (options.reorder) offer(roam::roam(problem, roam_options(options, watch.left() / 2)));
    if (best.peak > best.load && ran_out_of_time && !watch.expired()) offer(lay_out(1));
  }
  for (const Baseline& baseline : baselines()) {
    if (best.peak <= bound) break;
    if (baseline.reorders && !options.reorder) continue;
    if (baseline.in_place && !options.in_place) continue;
    if (baseline.freedom != Freedom::kIssueOrder) continue;
    if (problem.op_count() > kMaxOpsForAllBaselines && !baseline.quick) continue;
    offer(baseline.plan(problem));
  }
  best.bound = bound;
  best.seconds = watch.seconds();
  return best;
}

}  // namespace tidemark::planner
