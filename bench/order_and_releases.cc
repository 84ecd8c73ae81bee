// Compares the cost of releases for a step in program order and in other orders, according to
// the search's own estimate, on the simulator. Prints a table in Markdown.
//
//   order_and_releases GRAPH.json PROFILE tier|no-tier EFFORT PERCENT...
//
// With --phases TIMES before GRAPH.json, plans as a session does (runtime/executor/
// step_planner.h): the order, a first plan by short searches, the long search, bounds. Then
// plans with TIMES the effort, unless that is 1. Prints the work, the processor time and the
// result of each phase as JSON.
//
// GRAPH.json comes from plan_graph --save-graph. EFFORT is that of a search, in millions of
// simulated calls; a session's is 48 for steps of a quarter of a second or more. PERCENT are
// budgets, relative to the peak in program order.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/core/units.h"
#include "runtime/cost/profile_limits.h"
#include "runtime/device/profile.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/pipeline/pipeline.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/releases/releases_in_order.h"
#include "runtime/planner/reordered_trace.h"
#include "runtime/planner/schedule_layout.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/trace_json.h"

namespace tidemark::planner {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "order_and_releases [--phases TIMES] GRAPH.json PROFILE tier|no-tier EFFORT PERCENT...\n\n"
    "Plans releases of a step in several orders, at each share of its peak. With --phases as a "
    "session does, and with TIMES the effort, with the time of each phase, as JSON.";
constexpr int kFirstPercent = 5;
struct Step {
  StepTrace trace;
  DeviceProfile profile;
  bool tier;
  int64_t effort;

  PlanLimits limits(int64_t percent) const {
    PlanLimits limits = limits_of(profile);
    limits.space = Bytes(program_order_peak(trace).count() / 100 * percent);
    limits.tier_space = tier ? Bytes(int64_t{1} << 40) : Bytes(0);
    return limits;
  }
  void check(const PlanLimits& limits, const Schedule& schedule) const {
    const auto wrong = schedule_violations(trace, limits, schedule, 1);
    TIDEMARK_CHECK(wrong.empty(), "a schedule is valid: " + wrong.front());
  }
  // Beyond the step's time in ample space.
  double overhead(Nanos time) const {
    return static_cast<double>(time.count()) / static_cast<double>(total_cost(trace).count()) -
           1;
  }
};

// --- in program order and in others ---

struct Row {
  std::string overhead = "none";
  int64_t work = 0;
  std::string order{};
};

void print_table(const Step& step, const char* name, const std::vector<int64_t>& percents) {
  const StepTrace& trace = step.trace;
  const Plan plan =
      plan_step(problem_from_trace(trace, {.residents_apart = true, .in_place = true}),
                {.limits = {.seconds = 1e9, .nodes = kOrderNodes}});
  const std::vector<uint32_t> planned(plan.order.begin(), plan.order.end());
  std::cout << fmt::format(
      "{}: {} operators, {:.3f} ms; peak {} in program order, {} in the planned "
      "one, {} with updates first\n\n"
      "| budget | program's order | calls | order chosen | | calls "
      "|\n|---|---|---|---|---|---|\n",
      name, trace.ops.size(), to_ms(total_cost(trace)), format_bytes(program_order_peak(trace)),
      format_bytes(program_order_peak(reordered(trace, planned))),
      format_bytes(program_order_peak(reordered(trace, updates_first(trace)))));

  for (const int64_t percent : percents) {
    const PlanLimits limits = step.limits(percent);
    const auto search = [&](const std::vector<std::vector<uint32_t>>& orders) {
      Row row;
      const auto probes = probe_releases(trace, limits, {}, orders, step.effort, &row.work);
      const auto found = plan_releases_in_order(trace, limits, {}, probes.worth_searching,
                                                step.effort, &row.work);
      if (!found) return row;
      step.check(limits, found->schedule);
      row.overhead = fmt::format("+{:.2f} %{}", 100 * step.overhead(found->schedule.time),
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
    std::cout << fmt::format("| {} % | {} | {} M | {} | {} | {} M |\n", percent, plain.overhead,
                             plain.work / 1'000'000, combined.order, combined.overhead,
                             combined.work / 1'000'000)
              << std::flush;
  }
}

// --- as a session plans ---

// What work() returns, with the processor time that it takes.
template <class Work>
Json timed(const Work& work) {
  const std::clock_t begin = std::clock();
  Json phase = work();
  phase["cpu_s"] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return phase;
}

struct Planned {
  Json phases = Json::object();
  std::optional<Schedule> best{};
};

Planned plan_by_phases(const Step& step, const PlanLimits& limits, int64_t effort) {
  const StepTrace& trace = step.trace;
  Planned made;
  std::vector<uint32_t> planned;
  made.phases["order"] = timed([&] {
    int64_t work = 0;
    // In proportion: a session's effort is kThorough.
    const Schedule schedule =
        plan_order(trace,
                   {.limits = {.seconds = 1e9, .nodes = effort * kOrderNodes / kThorough},
                    .space = limits.space},
                   &work);
    planned = order_of(schedule);
    return Json{{"calls", work}, {"peak_bytes", schedule.peak.count()}};
  });

  // Its time; keeps the quickest schedule.
  const auto keep = [&](Schedule found) {
    step.check(limits, found);
    const Nanos time = time_of_releases(found, limits);
    if (!made.best || time < time_of_releases(*made.best, limits)) made.best = std::move(found);
    return to_ms(time);
  };
  std::vector<std::vector<uint32_t>> orders;
  made.phases["first"] = timed([&] {
    Json phase;
    int64_t work = 0;
    auto first = plan_first_releases(trace, limits, {}, planned, true, effort, &work);
    orders = std::move(first.worth_searching);
    if (first.best) phase["ms"] = keep(std::move(first.best->schedule));
    phase["calls"] = work;
    return phase;
  });
  made.phases["long"] = timed([&] {
    Json phase;
    int64_t work = 0;
    if (auto found = plan_long(trace, limits, {}, orders, effort, &work))
      phase["ms"] = keep(*std::move(found));
    phase["calls"] = work;
    return phase;
  });
  if (made.best) made.phases["ms"] = to_ms(time_of_releases(*made.best, limits));
  return made;
}

Json bounds_of(const Step& step, const PlanLimits& limits, const Schedule& schedule) {
  return timed([&] {
    Json found;
    if (const auto bounds = bound_time(schedule, step.trace, limits)) {
      found["ample_ms"] = to_ms(bounds->ample);
      found["ms"] = to_ms(bounds->least);
      found["any_order_ms"] = to_ms(bounds->any_order);
    }
    return found;
  });
}

// Of two runs, as other programs may slow one.
void take_less_time(Json& phases, const Json& again) {
  for (const char* phase : {"order", "first", "long"}) {
    Json& seconds = phases[phase]["cpu_s"];
    seconds = std::min(seconds.get<double>(), again[phase]["cpu_s"].get<double>());
  }
}

void print_phases(const Step& step, int64_t times, const std::vector<int64_t>& percents) {
  Json made{{"operators", step.trace.ops.size()},
            {"peak_bytes", program_order_peak(step.trace).count()},
            {"effort", step.effort}};
  for (const int64_t percent : percents) {
    const PlanLimits limits = step.limits(percent);
    Json row{{"percent", percent}, {"budget_bytes", limits.space.count()}};
    Planned planned = plan_by_phases(step, limits, step.effort);
    if (planned.best) {
      planned.phases["bounds"] = bounds_of(step, limits, *planned.best);
      planned.phases["in_program_order"] = in_program_order(*planned.best);
      planned.phases["placed"] = planned.best->placed;
      planned.phases["shortfall_bytes"] = planned.best->shortfall.count();
    }
    if (times > 1) row["more"] = plan_by_phases(step, limits, times * step.effort).phases;
    take_less_time(planned.phases, plan_by_phases(step, limits, step.effort).phases);
    row["session"] = std::move(planned.phases);
    made["budgets"].push_back(std::move(row));
  }
  std::cout << made.dump(1) << "\n";
}

int run(int argc, char** argv) {
  const bool by_phase = argc > 1 && std::string_view(argv[1]) == "--phases";
  const int flags = by_phase ? 2 : 0;
  if (const auto code = explain_usage(argc, argv, argc - flags <= kFirstPercent, kUsage))
    return *code;
  char** const words = argv + flags;
  const Step step{.trace = trace_from_json(read_text_file(words[1]), words[1]),
                  .profile = load_profile(words[2]),
                  .tier = std::string_view(words[3]) == "tier",
                  .effort = std::atoll(words[4]) * 1'000'000};
  std::vector<int64_t> percents;
  for (int a = kFirstPercent; a < argc - flags; ++a) percents.push_back(std::atoll(words[a]));
  by_phase ? print_phases(step, std::atoll(argv[2]), percents)
           : print_table(step, words[1], percents);
  return 0;
}

}  // namespace
}  // namespace tidemark::planner

int main(int argc, char** argv) {
  return tidemark::run_main("order_and_releases", tidemark::planner::run, argc, argv, 1);
}
