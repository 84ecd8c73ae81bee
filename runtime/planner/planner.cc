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

// Up to this size all baselines run, which takes a few milliseconds each; beyond it, only the
// quick ones.
constexpr size_t kMaxOpsForAllBaselines = 50'000;

// A baseline counts as this many search nodes per storage.
constexpr int64_t kBaselineNodes = 20;

// `gradients_wait`: for their updates, which is not in the paper. Either way may be the better.
roam::RoamOptions roam_options(const PlannerOptions& options, const Stopwatch& watch,
                               bool gradients_wait) {
  roam::RoamOptions roam;
  roam.limits = options.limits;
  roam.limits.seconds = std::max(0.0, watch.left()) / 2;
  roam.limits.nodes = std::min(roam.limits.nodes, roam::RoamOptions().limits.nodes);
  roam.threads = 1;  // training may go on meanwhile
  if (gradients_wait) roam.updates = roam::gradients_that_wait();
  return roam;
}

// In a given order, no plan is below the load that the order forces.
Bytes bound_in_order(const Problem& problem, const std::vector<OpId>& order, bool in_place) {
  return assemble(problem, order, in_place,
                  [](const std::vector<Buffer>& buffers) { return Offsets(buffers.size()); })
      .load;
}

}  // namespace

Plan plan_step(const Problem& problem, const PlannerOptions& options) {
  check_problem(problem);
  const Stopwatch watch(options.limits);
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
    // A search by segments may succeed where the search in one piece did not.
    Bytes load = found.load;
    for (const bool gradients_wait : {true, false}) {
      if (load <= bound || limits.stopped()) break;
      std::vector<OpId> by_segments =
          roam::roam_order(problem, roam_options(options, watch, gradients_wait));
      const Bytes by_segments_load = peak_load(problem, by_segments);
      if (by_segments_load >= load) continue;
      load = by_segments_load;
      order = std::move(by_segments);
      method = "search by segments";
    }
  } else {
    bound = bound_in_order(problem, order, options.in_place);
  }

  limits.seconds = std::max(0.0, watch.left());
  if (bound > options.space) limits.nodes = 0;
  std::string layout_method;
  Plan best =
      assemble(problem, order, options.in_place, [&](const std::vector<Buffer>& buffers) {
        Layout layout = plan_layout(buffers, {limits});
        layout_method = layout.method;
        return std::move(layout.offsets);
      });
  best.method = method + ", " + layout_method;
  const Bytes in_program_order = peak_load(problem, program_order(problem));
  const Bytes in_lescea_order = peak_load(problem, lescea(problem));
  for (const Baseline& baseline : baselines()) {
    if (best.peak <= bound || limits.stopped()) break;
    if (baseline.only_compared) continue;
    // No layout is below the load.
    const Bytes load = baseline.reorders ? in_lescea_order : in_program_order;
    if (!baseline.in_place && load >= best.peak) continue;
    if (baseline.reorders && !options.reorder) continue;
    if (baseline.in_place && !options.in_place) continue;
    if (baseline.freedom != Freedom::kIssueOrder) continue;
    if (problem.op_count() > kMaxOpsForAllBaselines && !baseline.quick) continue;
    limits.count(kBaselineNodes * static_cast<int64_t>(problem.storages.size()));
    Plan plan = baseline.plan(problem);
    if (plan.peak < best.peak) best = std::move(plan);
  }
  best.bound = bound;
  best.seconds = watch.seconds();
  return best;
}

}  // namespace tidemark::planner
