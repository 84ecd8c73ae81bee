#include "examples/common/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "examples/common/output_file.h"
#include "examples/common/run.h"
#include "runtime/core/errors.h"
#include "runtime/core/process_memory.h"
#include "runtime/schedule/fingerprint.h"
#include "runtime/telemetry/summary.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<Bytes>& bytes) {
  return bytes ? Json(bytes->count()) : Json(nullptr);
}
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json step_json(size_t index, const TrainedStep& record) {
  const StepStats& s = record.stats;
  Json json;
  json["step"] = index;
  json["loss"] =
      record.loss && std::isfinite(*record.loss) ? Json(*record.loss) : Json(nullptr);
  json["loss_bits"] = record.loss
                          ? Json(fmt::format("{:08x}", std::bit_cast<uint32_t>(*record.loss)))
                          : Json(nullptr);
  json["ms"] = to_ms(s.duration);
  json["mode"] = s.planned ? "static" : "dynamic";
  json["peak_reserved_bytes"] = s.peak_reserved.count();
  json["peak_live_bytes"] = s.peak_live.count();
  add_decisions(json, s);
  json["planning_ms"] = to_ms(s.planning_time);
  if (record.tokens > 0) json["tokens"] = record.tokens;
  if (record.validation_loss) json["validation_loss"] = *record.validation_loss;
  return json;
}

StepStats sum(const std::vector<TrainedStep>& steps) {
  StepStats total;
  for (const TrainedStep& record : steps) total += record.stats;
  return total;
}

double percent(Bytes part, Bytes whole) {
  return whole.count() == 0
             ? 0
             : 100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

double percent(Nanos part, Nanos whole) {
  return percent(Bytes(part.count()), Bytes(whole.count()));
}

bool had_to_release(const RunReport& report) {
  return report.budget && report.unmanaged && *report.budget < report.unmanaged->peak;
}

// The process, shown before the arena: without a budget, now, promised.
std::string process_lines(const RunReport& report) {
  if (!report.process_peak) return "";
  const auto line = [](std::string_view what, Bytes bytes, const std::string& about) {
    return fmt::format("  {:<24}{:>14}  {}\n", what, format_bytes(bytes), about);
  };
  const Bytes arena = report.arena_in_ram ? report.peak_reserved.value_or(Bytes(0)) : Bytes(0);
  const Bytes host = report.host_peak.value_or(Bytes(0));
  const Bytes program =
      std::max(Bytes(0), *report.process_peak - arena - host - report.loader_bytes);
  const auto parts = [&](Bytes arena_part, Bytes host_part, Bytes program_part) {
    std::string text;
    const auto add = [&](const char* name, Bytes bytes) {
      if (bytes == Bytes(0)) return;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_bytes(bytes));
    };
    add("arena", arena_part);
    add("host tier", host_part);
    add("loading", report.loader_bytes);
    add("program", program_part);
    return text;
  };
  const std::optional<Bytes> unmanaged = process_without_budget(report);
  const Bytes whole = report.arena_in_ram ? report.unmanaged->peak : Bytes(0);
  std::string text = report.arena_in_ram ? "\n  memory of the process\n"
                                         : "\n  memory of the process, on the host\n";
  if (had_to_release(report) && unmanaged) {
    text += line("without a budget", *unmanaged,
                 "predicted: " + parts(whole, Bytes(0), *report.program_memory));
  }
  text += line("this run", *report.process_peak,
               "as the system counts it: " + parts(arena, host, program));
  if (report.process_promised) {
    const Bytes promised = *report.process_promised;
    const bool kept = *report.process_peak <= promised;
    text +=
        line("promised", promised,
             kept ? "kept" : "EXCEEDED by " + format_bytes(*report.process_peak - promised));
  }
  return text;
}

// The savings in the process's memory and in the arena, which differ.
std::string saved_line(const RunReport& report) {
  const Bytes peak = report.unmanaged->peak;
  const Bytes of_arena = peak - report.peak_reserved.value_or(Bytes(0));
  std::string text;
  if (const auto unmanaged = process_without_budget(report);
      unmanaged && report.arena_in_ram && had_to_release(report)) {
    const Bytes of_process = *unmanaged - *report.process_peak;
    text = of_process >= Bytes(0)
               ? fmt::format("{} of the process ({:.1f} %), ", format_bytes(of_process),
                             percent(of_process, *unmanaged))
               : fmt::format("nothing: the process is {} larger; ",
                             format_bytes(Bytes(0) - of_process));
  }
  return fmt::format("\n  saved       {}{} of the arena ({:.1f} %)\n", text,
                     format_bytes(of_arena), percent(of_arena, peak));
}

std::string step_lines(const StepStats& total) {
  std::string text = fmt::format(
      "  recomputed  {} operators, {:.1f} ms ({:.1f} % of the time); {} evictions\n",
      total.recomputes, to_ms(total.recompute_time),
      percent(total.recompute_time, total.duration), total.evictions);
  text += fmt::format(
      "  moved       {} out in {} copies, {} back in {}; {} released with a copy kept\n",
      format_bytes(total.offload_bytes), total.offloads, format_bytes(total.reload_bytes),
      total.reloads, total.clean_drops);
  text += fmt::format("  waited      {:.1f} ms for copies ({:.1f} % of the time)\n",
                      to_ms(total.stall_time), percent(total.stall_time, total.duration));
  return text;
}

// How much longer than the unmanaged step this step takes, in percent. None: not known.
std::optional<double> overhead(const RunReport& report, const BudgetPrediction& at) {
  if (report.predictions.empty() || !report.predictions.front().step || !at.step) return {};
  if (report.predictions.front().step->rounds == 0 || at.step->rounds == 0) return {};
  const auto base = static_cast<double>(report.predictions.front().step->step.duration.count());
  if (base <= 0) return {};
  return 100 * (static_cast<double>(at.step->step.duration.count()) / base - 1);
}

// The most that the process takes. The host tier counts with what the simulation used.
Bytes used(const RunReport& report, const BudgetPrediction& at) {
  if (!at.step || at.step->rounds == 0) return at.process;
  return at.process - report.host_limit + at.step->host_peak;
}

Json prediction_json(const RunReport& report, const BudgetPrediction& at) {
  Json json;
  json["budget_bytes"] = at.budget.count();
  json["process_promised_bytes"] = at.process.count();
  json["process_bytes"] = used(report, at).count();
  json["schedule"] = at.schedule.name();
  json["completes"] = at.step.has_value();
  json["stopped"] = at.stopped;
  if (!at.step) return json;
  json["simulated_steps"] = at.step->rounds;
  if (at.step->rounds == 0) {
    json["completes"] = nullptr;
    return json;
  }
  const StepStats& step = at.step->step;
  json["ms"] = to_ms(step.duration);
  json["overhead_percent"] = or_null(overhead(report, at));
  json["offload_bytes"] = step.offload_bytes.count();
  json["reload_bytes"] = step.reload_bytes.count();
  json["recomputes"] = step.recomputes;
  json["recompute_ms"] = to_ms(step.recompute_time);
  json["host_peak_bytes"] = at.step->host_peak.count();
  json["disk_peak_bytes"] = at.step->disk_peak.count();
  return json;
}

// The time of a settled step in some budgets, as simulated.
std::string prediction_table(const RunReport& report) {
  if (report.predictions.empty()) return "";
  std::string text =
      fmt::format("\n  {:>10}{:>8}{:>12}{:>12}{:>10}{:>12}{:>12}  {}\n", "arena", "",
                  report.arena_in_ram ? "process <=" : "host side <=", "a step", "overhead",
                  "moved", "recomputed", "offloads to");
  for (const BudgetPrediction& at : report.predictions) {
    text +=
        fmt::format("  {:>10}{:>6.1f} %{:>12}", format_bytes(at.budget),
                    percent(at.budget, report.unmanaged->peak), format_bytes(used(report, at)));
    if (!at.step) {
      text += "  memory ran out in the simulation\n";
      continue;
    }
    if (at.step->rounds == 0) {
      text += "  unknown: simulating one step takes too long\n";
      continue;
    }
    const StepStats& step = at.step->step;
    const bool host = at.step->host_peak > Bytes(0), disk = at.step->disk_peak > Bytes(0);
    text += fmt::format("{:>9.1f} ms{:>8.1f} %{:>12}{:>9.1f} ms  {}\n", to_ms(step.duration),
                        overhead(report, at).value_or(0),
                        format_bytes(step.offload_bytes + step.reload_bytes),
                        to_ms(step.recompute_time),
                        std::string(host && disk ? "RAM, disk"
                                    : host       ? "RAM"
                                    : disk       ? "disk"
                                                 : "") +
                            (at.stopped ? " *" : ""));
  }
  text += fmt::format("  simulated, once the policy has settled ({})\n", report.flags.policy);
  text += fmt::format("  <= at most, with {} set aside for the program itself\n",
                      format_bytes(most_program_memory(report.flags)));
  const bool any_plans =
      report.flags.plan.value_or(true) &&
      std::any_of(report.predictions.begin(), report.predictions.end(),
                  [&](const BudgetPrediction& at) {
                    return at.schedule.policy == "tide" && at.budget < report.unmanaged->peak;
                  });
  if (any_plans)
    text += "  " + planning_note(!report.flags.on_simulator() && !report.flags.costs);
  const bool any_stopped = std::any_of(
      report.predictions.begin(), report.predictions.end(),
      [](const BudgetPrediction& at) { return at.stopped && at.step && at.step->rounds > 0; });
  if (any_stopped) {
    text +=
        "  * the dry run stopped at its limit before it had tried all schedules, or before\n"
        "    the policy had settled: training may be faster\n";
  }
  return text;
}

// One line per category that occurs: its name and two columns of bytes.
std::string category_lines(const CategoryBytes& left, const CategoryBytes& right) {
  std::string text;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    if (left[category].count() == 0 && right[category].count() == 0) continue;
    text += fmt::format("  {:<24}{:>14}{:>16}\n", to_string(category),
                        format_bytes(left[category]), format_bytes(right[category]));
  }
  return text;
}

// What no plan takes less than; none: not known.
std::optional<Bytes> least_of_any_plan(const RunReport& report,
                                       const PlanSummary::Followed& plan) {
  if (!plan.releases) return plan.bound;
  if (report.minimum && report.minimum->is_least) return report.minimum->budget;
  return std::nullopt;
}

// Of a step by the plan, beside the step without a limit, and what no plan takes less than.
std::string time_line(const PlanSummary::Followed& plan) {
  if (!plan.releases) return "releases nothing, so a step takes no longer than without a limit";
  const auto above = [&](Nanos time) {
    return 100 *
           (static_cast<double>(time.count()) / static_cast<double>(plan.ample_time.count()) -
            1);
  };
  const std::string step = "over the step without a limit, as modelled; ";
  const std::string text =
      plan.is_partial
          ? "how far " + step + "is not known, as it leaves some releases to the policy; "
          : fmt::format("{:.1f} % {}", above(plan.time), step);
  if (plan.time_bound == Nanos(0)) return text + "the run ended before a bound was known";
  // Rounded down, as they are bounds.
  const auto at_least = [&](Nanos time) { return std::floor(10 * above(time)) / 10; };
  const double in_order = at_least(plan.time_bound), any = at_least(plan.any_order_bound);
  if (in_order <= 0) return text + "no bound above that step is known";
  if (any <= 0)
    return text + fmt::format("no plan in this order can be below {:.1f} %", in_order);
  const std::string other =
      in_order > any ? fmt::format(", none in this order below {:.1f} %", in_order) : "";
  return text + fmt::format("no plan can be below {:.1f} %", any) + other;
}

}  // namespace

void add_decisions(nlohmann::ordered_json& json, const StepStats& s) {
  json["evictions"] = s.evictions;
  json["offloads"] = s.offloads;
  json["reloads"] = s.reloads;
  json["prefetches"] = s.prefetches;
  json["recomputes"] = s.recomputes;
  json["clean_drops"] = s.clean_drops;
  json["compactions"] = s.compactions;
  json["evicted_bytes"] = s.evicted_bytes.count();
  json["offload_bytes"] = s.offload_bytes.count();
  json["reload_bytes"] = s.reload_bytes.count();
  json["recompute_ms"] = to_ms(s.recompute_time);
  json["stall_ms"] = to_ms(s.stall_time);
}

std::optional<Bytes> process_without_budget(const RunReport& report) {
  if (!report.process_peak || !report.unmanaged) return std::nullopt;
  if (!had_to_release(report)) return report.process_peak;
  if (!report.program_memory) return std::nullopt;
  const Bytes arena = report.arena_in_ram ? report.unmanaged->peak : Bytes(0);
  return arena + report.loader_bytes + *report.program_memory;
}

std::string to_json(const RunReport& report) {
  const RunFlags& flags = report.flags;
  Json json;
  json["program"] = report.program;
  json["model"] = flags.model;
  json["dtype"] = to_string(flags.dtype);
  json["device"] = flags.device;
  json["estimated_by"] = or_null(report.estimated_by);
  json["policy"] = flags.policy;
  const bool delta = flags.policy == "delta" || flags.policy == "delta-paper";
  const std::string& filter = flags.delta.filter;
  json["filter"] = !filter.empty() ? Json(filter) : delta ? Json("base") : Json(nullptr);
  json["repairs"] = flags.delta.repairs.empty() ? Json() : Json(flags.delta.repairs);
  json["schedule"] = report.schedule ? Json(report.schedule->name()) : Json(nullptr);
  json["other_algorithms"] = report.other_algorithms ? Json(*report.other_algorithms) : Json();
  json["batch"] = report.batch;
  json["budget_bytes"] = or_null(report.budget);
  json["minimum_budget_bytes"] = report.minimum ? Json(report.minimum->budget.count()) : Json();
  json["minimum_is_least"] = report.minimum ? Json(report.minimum->is_least) : Json();
  json["unmanaged_peak_bytes"] =
      report.unmanaged ? Json(report.unmanaged->peak.count()) : Json();
  json["peak_reserved_bytes"] = or_null(report.peak_reserved);
  json["peak_live_bytes"] = or_null(report.peak_live);
  json["host_peak_bytes"] = or_null(report.host_peak);
  json["disk_peak_bytes"] = or_null(report.disk_peak);
  json["host_limit_bytes"] = report.host_limit.count();
  json["disk_limit_bytes"] = report.disk_limit.count();
  json["loader_bytes"] = report.loader_bytes.count();
  json["program_memory_bytes"] = most_program_memory(report.flags).count();
  json["process_unmanaged_bytes"] = or_null(process_without_budget(report));
  json["process_unmanaged_is_measured"] =
      report.process_peak ? Json(!had_to_release(report)) : Json(nullptr);
  json["process_peak_bytes"] = or_null(report.process_peak);
  json["process_promised_bytes"] = or_null(report.process_promised);
  json["params_checksum"] = or_null(report.params_checksum);
  if (!report.predictions.empty()) {
    json["predictions"] = Json::array();
    for (const BudgetPrediction& at : report.predictions) {
      json["predictions"].push_back(prediction_json(report, at));
    }
  }
  json["planning_ms"] = to_ms(sum(report.steps).planning_time);
  json["steps"] = Json::array();
  for (size_t i = 0; i < report.steps.size(); ++i) {
    json["steps"].push_back(
        step_json(static_cast<size_t>(report.first_step) + i, report.steps[i]));
  }
  if (report.plan) {
    Json plan{{"steps", report.plan->steps}, {"mismatches", report.plan->mismatches}};
    if (const auto& followed = report.plan->followed) {
      plan["operators"] = followed->operators;
      plan["peak_bytes"] = followed->peak.count();
      if (const auto bound = least_of_any_plan(report, *followed)) {
        plan["bound_bytes"] = bound->count();
      }
      plan["reordered"] = followed->reordered;
      plan["releases"] = followed->releases;
      plan["seconds"] = followed->seconds;
      if (followed->ample_time > Nanos(0)) {
        plan["ample_ms"] = to_ms(followed->ample_time);
        if (!followed->is_partial) plan["ms"] = to_ms(followed->time);
      }
      if (followed->time_bound > Nanos(0)) {
        plan["bound_ms"] = to_ms(followed->time_bound);
        plan["any_order_bound_ms"] = to_ms(followed->any_order_bound);
      }
      plan["made_from"] = fingerprint_text(followed->made_from);
      plan["schedule"] = fingerprint_text(followed->schedule);
    }
    json["plan"] = plan;
  }
  json["eval"] = {{"accuracy", or_null(report.evaluation.accuracy)}};
  for (const auto& [name, score] : report.evaluation.scores) json["eval"][name] = score;
  return json.dump(1);
}

void write_json(const RunReport& report, const std::string& path) {
  write_output(path, to_json(report) + "\n");
}

std::string stand_in_note(const std::string& policy, const ReleaseSchedule& schedule) {
  if (schedule.policy != policy) {
    return fmt::format(
        "{} runs out of memory in this budget or is slower than {}, which replaces it\n",
        policy, schedule.name());
  }
  if (schedule.fallback_policy.empty()) return "";
  return fmt::format("{}: the fastest policy in this budget where there is no plan\n",
                     schedule.name());
}

std::string planning_note(bool in_background) {
  return in_background ? "planning: in the background once steps repeat; steps run under the "
                         "policy until a plan is ready\n"
                       : "planning: between steps once they repeat; until then, steps run "
                         "under the policy\n";
}

std::string need_table(const RunReport& report) {
  const UnmanagedNeed& need = *report.unmanaged;
  const MinimumBudget& minimum = *report.minimum;
  std::string text = fmt::format("{} at batch {} on {}\n\n  {:<24}{:>14}{:>16}\n",
                                 report.flags.model, report.batch, report.flags.device,
                                 "memory at the peak", "unmanaged", "smallest");
  text += category_lines(need.categories, minimum.categories);
  text += fmt::format("  {:<24}{:>14}{:>16}\n", "total live", format_bytes(need.live),
                      format_bytes(minimum.categories.total()));
  text += fmt::format("  {:<24}{:>14}{:>16}\n", "budget needed", format_bytes(need.peak),
                      format_bytes(minimum.budget));
  text += fmt::format("  {:<24}{:>14}{:>16}\n\n", "in bytes", need.peak.count(),
                      minimum.budget.count());
  text += fmt::format(
      "The smallest feasible budget is {:.1f} % of the unmanaged peak. The largest operator,\n"
      "{}, works on {} at once.\n",
      percent(minimum.budget, need.peak), need.operator_name,
      format_bytes(need.largest_operator));
  if (!minimum.is_least) {
    text +=
        "The dry run stopped at its limit: training is known to complete in that budget, and\n"
        "may in a smaller one.\n";
  }
  text += prediction_table(report);
  if (report.estimated_by) {
    text += fmt::format(
        "\nEstimated with the profile {}: workspaces are modelled; on a GPU, its libraries\n"
        "report their sizes.",
        *report.estimated_by);
    if (!report.no_gpu.empty()) text += " Here " + report.no_gpu + ".";
    text += "\n";
  }
  return text;
}

std::string result_table(const RunReport& report) {
  const StepStats total = sum(report.steps);
  std::string text = process_lines(report);
  text +=
      fmt::format("\n  {:<24}{:>14}{:>16}\n", "memory of the arena", "unmanaged", "this run");
  text += category_lines(report.unmanaged->categories, report.peak_categories);
  const Bytes peak = report.peak_reserved.value_or(Bytes(0));
  text += fmt::format("  {:<24}{:>14}{:>16}\n", "peak of the arena",
                      format_bytes(report.unmanaged->peak), format_bytes(peak));
  if (report.budget) {
    text += fmt::format("  {:<24}{:>14}{:>16}\n", "budget", "-", format_bytes(*report.budget));
  }
  if (!report.steps.empty()) text += saved_line(report) + step_lines(total);
  if (report.host_peak && report.host_peak->count() > 0) {
    text += fmt::format("  host memory {}\n", format_bytes(*report.host_peak));
  }
  if (report.disk_peak && report.disk_peak->count() > 0) {
    text += fmt::format("  disk        {}\n", format_bytes(*report.disk_peak));
  }
  if (!report.steps.empty()) {
    text += fmt::format("  time        {} steps, {:.1f} ms each\n", report.steps.size(),
                        to_ms(total.duration) / static_cast<double>(report.steps.size()));
  }
  if (total.planning_time > Nanos(0)) {
    text += fmt::format("  planning    {:.1f} s between steps, not included in their time\n",
                        to_seconds(total.planning_time));
  }
  if (report.plan && report.plan->followed) {
    const PlanSummary::Followed& plan = *report.plan->followed;
    const std::optional<Bytes> least = least_of_any_plan(report, plan);
    text += fmt::format(
        "  planned     {} steps: {} operators in {}, {}\n", report.plan->steps, plan.operators,
        format_bytes(plan.peak),
        plan.releases ? "with releases" : "at least " + format_bytes(*least) + " in any plan");
    if (plan.releases && least) {
      text += fmt::format("              no plan fits in less than {}\n", format_bytes(*least));
    }
    if (!plan.releases || plan.ample_time > Nanos(0)) {
      text += "              " + time_line(plan) + "\n";
    }
  }
  if (report.evaluation.accuracy) {
    text += fmt::format("  accuracy    {:.2f} % of the test {}\n",
                        100 * *report.evaluation.accuracy, report.evaluation.of);
  }
  for (const auto& [name, score] : report.evaluation.scores) {
    text += fmt::format("  {:<11} {:.4f}\n", name, score);
  }
  return text;
}

}  // namespace tidemark
