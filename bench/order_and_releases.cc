// Compares the cost of releases for a step in program order and in other orders, according to
// the search's own estimate, on the simulator. Prints a table in Markdown.
//
//   order_and_releases GRAPH.json PROFILE tier|no-tier EFFORT PERCENT...
//
// GRAPH.json comes from plan_graph --save-graph. EFFORT is that of a search, in millions of
// simulated calls. PERCENT are budgets, relative to the peak in program order.
#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/cost/profile_limits.h"
#include "runtime/device/profile.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/releases/releases_in_order.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/trace_json.h"

namespace tidemark::planner {
namespace {

constexpr int kFirstPercent = 5;

struct Row {
  std::string overhead = "none";
  int64_t work = 0;
  std::string order{};
};

int run(int argc, char** argv) {
  if (const auto code = explain_usage(
          argc, argv, argc <= kFirstPercent,
          "order_and_releases GRAPH.json PROFILE tier|no-tier EFFORT PERCENT...\n\nPlans "
          "releases of a step in several orders, at each share of its peak.")) {
    return *code;
  }
  const StepTrace trace = trace_from_json(read_text_file(argv[1]), argv[1]);
  const DeviceProfile profile = load_profile(argv[2]);
  const bool tier = std::string(argv[3]) == "tier";
  const int64_t effort = std::atoll(argv[4]) * 1'000'000;

  const Problem problem =
      problem_from_trace(trace, {.residents_apart = true, .in_place = true});
  const Plan plan = plan_step(problem, {.limits = {.seconds = 1e9, .nodes = 200'000}});
  const std::vector<uint32_t> planned(plan.order.begin(), plan.order.end());
  const Bytes peak = program_order_peak(trace);
  const Nanos unlimited = total_cost(trace);
  std::cout << fmt::format(
      "{}: {} operators, {:.3f} ms; peak {} in program order, {} in the planned "
      "one, {} with updates first\n\n"
      "| budget | program's order | calls | order chosen | | calls "
      "|\n|---|---|---|---|---|---|\n",
      argv[1], trace.ops.size(), static_cast<double>(unlimited.count()) * 1e-6,
      format_bytes(peak), format_bytes(program_order_peak(reordered(trace, planned))),
      format_bytes(program_order_peak(reordered(trace, updates_first(trace)))));

  for (int a = kFirstPercent; a < argc; ++a) {
    PlanLimits limits = limits_of(profile);
    limits.space = Bytes(peak.count() / 100 * std::atoll(argv[a]));
    limits.tier_space = tier ? Bytes(int64_t{1} << 40) : Bytes(0);
    const auto search = [&](const std::vector<std::vector<uint32_t>>& orders) {
      Row row;
      const auto probes = probe_releases(trace, limits, {}, orders, effort, &row.work);
      const auto found =
          plan_releases_in_order(trace, limits, {}, probes.worth_searching, effort, &row.work);
      if (!found) return row;
      const auto wrong = schedule_violations(trace, limits, found->schedule, 1);
      TIDEMARK_CHECK(wrong.empty(), "a schedule is valid: " + wrong.front());
      const Nanos time = found->schedule.time;
      row.overhead = fmt::format(
          "+{:.2f} %{}",
          100 *
              (static_cast<double>(time.count()) / static_cast<double>(unlimited.count()) - 1),
          found->schedule.placed ? "" : ", not placed");
      if (found->schedule.shortfall > Bytes(0))
        row.overhead += ", short of " + format_bytes(found->schedule.shortfall);
      row.order = found->order.empty()      ? "program's"
                  : found->order == planned ? "planned"
                                            : "updates first";
      return row;
    };
    const Row plain = search({});
    const Row combined = search(orders_to_try(trace, limits, {}, planned));
    std::cout << fmt::format("| {} % | {} | {} M | {} | {} | {} M |\n", argv[a], plain.overhead,
                             plain.work / 1'000'000, combined.order, combined.overhead,
                             combined.work / 1'000'000)
              << std::flush;
  }
  return 0;
}

}  // namespace
}  // namespace tidemark::planner

int main(int argc, char** argv) {
  return tidemark::run_main("order_and_releases", tidemark::planner::run, argc, argv, 1);
}
