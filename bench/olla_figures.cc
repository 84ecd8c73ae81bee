// One training step planned by OLLA as published, with what the paper's figures 7 to 14 show of
// it; for olla_report.py, which runs this for each network.
//
//   olla_figures GRAPH.json [--deadline SECONDS]
//
// GRAPH.json: a step, as plan_graph --save-graph writes it. Prints JSON. Sizes are in bytes,
// with parameters and their state. The deadline is for each of the two programs, (14) and (15).
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/first_line.h"
#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/baselines/caching_allocator.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/papers/olla/olla.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/validator.h"
#include "runtime/schedule/trace_json.h"

namespace tidemark::planner {
namespace {

using Json = nlohmann::ordered_json;

void require_valid(const Problem& problem, const Plan& plan) {
  const std::vector<std::string> faults = violations(problem, plan);
  TIDEMARK_CHECK(faults.empty(), "a plan failed validation: " + faults[0]);
}

Json to_json(const olla::Report& report) {
  Json curve = Json::array();
  for (const olla::Improvement& found : report.improvements) {
    curve.push_back({found.seconds, found.peak.count(),
                     found.bound > Bytes(0) ? Json(found.bound.count()) : Json()});
  }
  return {{"variables", report.variables},
          {"integers", report.integers},
          {"rows", report.rows},
          {"seconds", report.seconds},
          {"status", to_string(report.status)},
          {"program_peak", report.peak.count()},
          {"program_bound", report.bound.count()},
          {"note", report.note},
          {"curve", std::move(curve)}};  // seconds, peak, bound
}

// The step's requests to a model of PyTorch's allocator, in PyTorch's order: what is reserved,
// what of it is allocated when that peaks (the paper's MR and RS), and the time that a step
// takes from the second on, as the authors measure PyTorch's own: a hundred times. Parameters
// stay.
Json walk_allocator(const Problem& problem, const Plan& plan) {
  struct Request {
    Bytes size;
    Offset address;
  };
  std::vector<Request> requests;
  std::vector<std::vector<size_t>> begins(plan.order.size()), ends(plan.order.size() + 1);
  CachingAllocator allocator;
  for (const Placement& p : plan.placements) {
    if (p.size == Bytes(0) || p.begin == p.end) continue;
    const auto end = static_cast<size_t>(p.end);
    if (p.storage != kNone && problem.storages[p.storage].at_start && end == begins.size()) {
      allocator.allocate(p.size);
      continue;
    }
    begins[static_cast<size_t>(p.begin)].push_back(requests.size());
    ends[end].push_back(requests.size());
    requests.push_back({p.size, Offset()});
  }
  Bytes reserved, allocated;
  const auto walk = [&] {
    for (size_t t = 0; t < ends.size(); ++t) {
      for (const size_t k : ends[t]) allocator.free(requests[k].address);
      if (t == begins.size()) break;
      for (const size_t k : begins[t]) {
        requests[k].address = allocator.allocate(requests[k].size);
      }
      if (reserved < allocator.reserved()) {
        reserved = allocator.reserved();
        allocated = allocator.allocated();
      }
    }
  };
  walk();  // takes the segments
  constexpr int kSteps = 100;
  const Stopwatch watch(0);
  for (int i = 0; i < kSteps; ++i) walk();
  return {{"requests", requests.size()},
          {"reserved", reserved.count()},
          {"allocated_at_peak", allocated.count()},
          {"microseconds_per_step", 1e6 * watch.seconds() / kSteps}};
}

Json plan_by_olla(const std::string& graph, double deadline) {
  const StepTrace step = trace_from_json(read_text_file(graph), graph);
  const Problem problem = problem_from_trace(step);
  const Plan pytorch = pytorch_plan(problem);
  require_valid(problem, pytorch);

  olla::Options options = olla::published();
  options.limits.seconds = deadline;
  const olla::OrderResult ordered = olla::order(problem, options);
  Json order = to_json(ordered.report);
  order["load"] = ordered.order ? Json(ordered.order->load.count()) : Json();

  // Where either is missing, the other is still checked: with PyTorch's order, or best fit.
  olla::LayoutResult placed;
  const Plan plan =
      assemble(problem, ordered.order ? ordered.order->order : pytorch.order, false,
               [&](const std::vector<Buffer>& buffers) {
                 placed = olla::layout(buffers, options);
                 return placed.layout ? placed.layout->offsets : best_fit_online(buffers);
               });
  require_valid(problem, plan);
  Json places = to_json(placed.report);
  places["load"] = plan.load.count();
  places["peak"] = placed.layout ? Json(plan.peak.count()) : Json();

  PlannerOptions ours;
  ours.limits.seconds = std::min(5.0, deadline);
  ours.in_place = false;
  const Plan best = plan_step(problem, ours);
  require_valid(problem, best);

  return {{"deadline_s", deadline},
          {"operators", problem.op_count()},
          {"storages", problem.storages.size()},
          {"pytorch",
           {{"load", pytorch.load.count()},
            {"reserved", pytorch.peak.count()},
            {"allocator", walk_allocator(problem, pytorch)}}},
          {"order", std::move(order)},
          {"places", std::move(places)},
          {"ours",
           {{"load", best.load.count()},
            {"peak", best.peak.count()},
            {"bound", best.bound.count()},
            {"seconds", best.seconds}}},
          {"solver", first_line_of("'" + require_solver().path +
                                   "' --version 2> /dev/null < /dev/null")}};
}

int run(int argc, char** argv) {
  CLI::App app{"Plans a training step by OLLA as published, and prints JSON."};
  std::string graph;
  double deadline = 300;
  app.add_option("GRAPH", graph, "step graph, as plan_graph --save-graph writes it")
      ->required();
  app.add_option("--deadline", deadline, "seconds for each program")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  require_solver();
  fmt::print("{}\n", plan_by_olla(graph, deadline).dump());
  return 0;
}

}  // namespace
}  // namespace tidemark::planner

int main(int argc, char** argv) {
  return tidemark::run_main("olla_figures", tidemark::planner::run, argc, argv, 1);
}
