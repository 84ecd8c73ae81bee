#include "examples/common/run.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <optional>

#include "examples/common/console.h"
#include "examples/common/interrupt.h"
#include "examples/common/output_file.h"
#include "examples/common/process_memory.h"
#include "examples/common/progress.h"
#include "examples/common/report.h"
#include "ops/register.h"
#include "runtime/core/errors.h"
#include "runtime/device/device.h"
#include "runtime/device/pages.h"
#include "runtime/replay/step_planner.h"
#include "runtime/session/session.h"
#include "runtime/telemetry/trace_writer.h"

namespace tidemark {
namespace {

constexpr size_t kTraceEvents = 1 << 19;
constexpr const char* kEstimateProfile = "a100-80gb";

// Fills in what the run needs, and gives the session options that follow from it.
SessionOptions plan(const RunFlags& flags, const Program& program, RunReport& report) {
  SessionOptions options = session_options(flags);
  report.unmanaged = measure_unmanaged(options, program);
  const Bytes peak = report.unmanaged->peak;
  options.unmanaged_peak = peak;
  options.host_limit = flags.host_limit.value_or(2 * peak);
  report.minimum = find_minimum_budget(options, program, *report.unmanaged);

  if (flags.budget) {
    report.budget = flags.budget->resolve(peak);
  } else if (flags.device != "cpu") {
    const Bytes memory = align_down(device_profile(flags.device).memory);
    if (memory < peak) report.budget = memory;
  }
  options.budget = report.budget.value_or(peak);
  if (options.policy == "none") options.host_limit = options.disk_limit = Bytes(0);
  report.host_limit = options.host_limit;
  return options;
}

// Throws InfeasibleBudget.
void check_budget(const SessionOptions& options, const RunReport& report) {
  const bool managed = options.policy != "none";
  const Bytes least = managed ? report.minimum->budget : report.unmanaged->peak;
  if (*options.budget < least) throw InfeasibleBudget(*options.budget, least);
}

void save_costs(const RunFlags& flags, Session& session) {
  if (flags.save_costs.empty()) return;
  CostTable table = session.costs().table();
  table.device = session.device().name();
  write_output(flags.save_costs, to_json(table));
}

void note_memory(const Session& session, RunReport& report) {
  report.peak_reserved = session.peak_reserved();
  report.peak_live = session.peak_live().total();
  report.peak_categories = session.peak_live();
  report.host_peak = session.host() ? session.host()->peak() : Bytes(0);
  report.disk_peak = session.disk() ? session.disk()->peak() : Bytes(0);
  report.process_peak = peak_resident_memory();
}

PlanSummary plan_summary(Session& session) {
  const PlanCounts& counts = plan_counts(session);
  PlanSummary summary{counts.planned_steps, counts.mismatches, {}};
  if (const PlannedStep* plan = current_plan(session); plan && counts.planned_steps > 0) {
    const bool releases = plan->memory.has_value();
    const Bytes apart = releases ? Bytes(0) : session.residency().bytes_in_use();
    summary.followed = {plan->graph.ops.size(),  apart + plan->peak, apart + plan->bound,
                        !plan->in_program_order, releases,           plan->seconds};
  }
  return summary;
}

// True if it ran to the end, false if it was interrupted.
bool train(const RunFlags& flags, const SessionOptions& options, const Job& job,
           RunReport& report) {
  Session session(options);
  ProgressLine* shown = nullptr;
  if (flags.plan) {
    // Simulated steps take no time to plan in.
    plan_steps(session, {.background = session.device().has_data(),
                         .report = [&shown](std::string_view what) {
                           if (shown) shown->note("plan: " + std::string(what));
                         }});
  }
  try {
    const std::unique_ptr<Training> training = job.start();
    const InterruptScope interrupt;
    int64_t done = report.first_step = training->first_step();
    {
      report.loader_bytes = training->loader_bytes();
      ProgressLine progress(stderr, job.steps(), *options.budget, done);
      shown = &progress;
      while (done < job.steps() && !interrupt.requested()) {
        StepOutcome outcome;
        training->prepare(done);
        const StepStats& stats = session.step([&] { outcome = training->step(); });
        report.steps.push_back({outcome.loss, stats});
        progress.step(stats, outcome.loss, outcome.correct, outcome.guesses);
        training->after_step(++done);
      }
      shown = nullptr;
    }
    if (flags.plan) report.plan = plan_summary(session);
    training->stop(done);
    save_costs(flags, session);
    report.params_checksum = training->checksum();
    if (!interrupt.requested()) report.evaluation = training->evaluate(session);
    note_memory(session, report);
    if (!flags.trace.empty()) {
      write_trace(session.events(), flags.trace,
                  {.process = flags.model,
                   .categories = {kCategoryNames.begin(), kCategoryNames.end()}});
    }
    return !interrupt.requested();
  } catch (...) {
    note_memory(session, report);
    throw;
  }
}

void announce(const Job& job, const RunReport& report, const SessionOptions& options,
              double seconds) {
  print_out("{}; {} steps of batch {} on {}{}\n", job.announcement(), job.steps(), job.batch(),
            options.device,
            report.flags.dtype == DType::kFloat32
                ? ""
                : fmt::format(", in {}", to_string(report.flags.dtype)));
  const Bytes peak = report.unmanaged->peak;
  print_out(
      "dry run ({:.2f} s): {} without a budget, at least {}; the budget is {} ({:.1f} %)\n",
      seconds, format_bytes(peak), format_bytes(report.minimum->budget),
      format_bytes(*options.budget),
      100.0 * static_cast<double>(options.budget->count()) / static_cast<double>(peak.count()));
  print_out("{}", stand_in_note(report.flags.policy, *report.schedule));
}

// A dry run for a GPU is exact where that GPU is; elsewhere it is an estimate by the profile of
// one. Other runs need the GPU, and that is said before any data is read. Gives the flags to go
// on with.
RunFlags settle_device(RunFlags flags, RunReport& report) {
  const bool dry_run_for_gpu = flags.dry_run && flags.on_cuda();
  if (!flags.profile.empty() && !dry_run_for_gpu) {
    throw UsageError(
        "--profile goes with --device cuda and --dry-run; to simulate a run, --device "
        "sim:PROFILE");
  }
  if (!flags.on_cuda()) return flags;
  std::string profile = flags.profile;
  if (profile.empty()) {
    try {
      device_profile(flags.device);
      return flags;
    } catch (const NoGpuError& error) {
      if (!dry_run_for_gpu) throw;
      report.no_gpu = error.what();
      profile = kEstimateProfile;
    }
  }
  report.estimated_by = profile;
  flags.device = "sim:" + profile;
  return flags;
}

// What cannot be had is said now: the kernel would end the process when its pages are touched,
// and under a limit (ulimit -v, -d) libraries end it as well. Throws HostMemoryError.
void check_host_memory(const SessionOptions& options) {
  if (options.device != "cpu") return;
  const std::optional<Bytes> machine = machine_memory();
  if (machine && *options.budget > *machine) {
    throw HostMemoryError(fmt::format(
        "training takes {} in the arena, but this machine has {} of memory and swap "
        "space; a smaller --budget or --batch is needed",
        format_bytes(*options.budget), format_bytes(*machine)));
  }
  if (memory_limits().empty()) return;
  map_pages(*options.budget + options.host_limit + kProgramMemory,
            fmt::format(" for a budget of {}, {} to offload to and {} of the program's own",
                        format_bytes(*options.budget), format_bytes(options.host_limit),
                        format_bytes(kProgramMemory)));
}

void note_smaller_batch(const Job& job, const RunReport& report) {
  if (job.batch() >= report.flags.batch) return;
  print_error("{}: --batch {} is more than the data set has; a step takes all {} samples\n",
              report.program, report.flags.batch, job.batch());
}

int run(const RunFlags& given, const OpenJob& open, RunReport& report) {
  const RunFlags flags = settle_device(given, report);
  const std::unique_ptr<Job> job = open(!flags.dry_run && !flags.on_simulator());
  report.batch = job->batch();
  note_smaller_batch(*job, report);
  const auto begin = std::chrono::steady_clock::now();
  const Program program = job->dry_run();
  SessionOptions options = plan(flags, program, report);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (flags.dry_run) {
    print_out("{}", need_table(report));
    check_budget(options, report);
    return kDone;
  }
  check_budget(options, report);
  check_host_memory(options);
  options = feasible_schedule(options, program, *report.unmanaged, *report.minimum);
  report.schedule = schedule_of(options);
  // Now, so that a path that cannot be written is known before an hour of training.
  for (const std::string& path : {flags.json, flags.trace, flags.save_costs}) {
    if (!path.empty()) check_writable(path);
  }
  announce(*job, report, options, took.count());
  const bool finished = train(flags, options, *job, report);
  print_out("{}", result_table(report));
  return finished ? int{kDone} : kInterruptedExitCode;
}

}  // namespace

SessionOptions session_options(const RunFlags& flags) {
  SessionOptions options;
  options.device = flags.device;
  register_cuda_kernels();  // for cuda and sim:cuda; costs nothing
  options.threads = flags.threads;
  options.tf32 = flags.tf32;
  options.policy = flags.policy;
  options.delta = flags.delta;
  options.residency.overlap = flags.overlap;
  options.costs = flags.costs;
  options.disk_limit = flags.disk_limit;
  options.disk_directory = flags.disk_directory;
  options.seed = flags.seed;
  if (!flags.trace.empty()) options.event_capacity = kTraceEvents;
  return options;
}

int run_job(const std::string& program, const RunFlags& flags, const OpenJob& open) {
  RunReport report;
  report.program = program;
  report.flags = flags;
  const int code = explain_errors(program, [&] { return run(flags, open, report); });
  if (flags.json.empty()) return code;
  // What was done is worth telling, even if a file could not be written in the end.
  if (code == kBadInput && report.steps.empty()) return code;
  return explain_errors(program, [&] {
    write_json(report, flags.json);
    return code;
  });
}

}  // namespace tidemark
