#include "examples/common/run.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <exception>
#include <optional>

#include "examples/common/interrupt.h"
#include "examples/common/process_memory.h"
#include "examples/common/progress.h"
#include "examples/common/report.h"
#include "runtime/core/errors.h"
#include "runtime/device/profile.h"
#include "runtime/session/session.h"
#include "runtime/telemetry/trace_writer.h"

namespace tidemark {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kBadInput = kUsageExitCode, kOutOfMemory = 3 };

constexpr size_t kTraceEvents = 1 << 19;

SessionOptions session_options(const RunFlags& flags) {
  SessionOptions options;
  options.device = flags.device;
  options.threads = flags.threads;
  options.policy = flags.policy;
  options.delta = flags.delta;
  options.residency.overlap = flags.overlap;
  options.disk_limit = flags.disk_limit;
  options.disk_directory = flags.disk_directory;
  options.seed = flags.seed;
  if (!flags.trace.empty()) options.event_capacity = kTraceEvents;
  return options;
}

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
  } else if (flags.on_simulator()) {
    const Bytes memory = load_profile(flags.device.substr(4)).memory;
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

void note_memory(const Session& session, RunReport& report) {
  report.peak_reserved = session.peak_reserved();
  report.peak_live = session.peak_live().total();
  report.peak_categories = session.peak_live();
  report.host_peak = session.host() ? session.host()->peak() : Bytes(0);
  report.disk_peak = session.disk() ? session.disk()->peak() : Bytes(0);
  report.process_peak = peak_resident_memory();
}

// True if it ran to the end, false if it was interrupted.
bool train(const RunFlags& flags, const SessionOptions& options, const Job& job,
           RunReport& report) {
  Session session(options);
  try {
    const std::unique_ptr<Training> training = job.start();
    const InterruptScope interrupt;
    int64_t done = report.first_step = training->first_step();
    {
      report.loader_bytes = training->loader_bytes();
      ProgressLine progress(stderr, job.steps(), *options.budget, done);
      while (done < job.steps() && !interrupt.requested()) {
        StepOutcome outcome;
        training->prepare(done);
        const StepStats& stats = session.step([&] { outcome = training->step(); });
        report.steps.push_back({outcome.loss, stats});
        progress.step(stats, outcome.loss, outcome.correct, outcome.guesses);
        training->after_step(++done);
      }
    }
    training->stop(done);
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
  fmt::print("{}; {} steps of batch {} on {}\n", job.announcement(), job.steps(), job.batch(),
             options.device);
  const Bytes peak = report.unmanaged->peak;
  fmt::print(
      "dry run ({:.2f} s): {} without a budget, at least {}; the budget is {} ({:.1f} %)\n",
      seconds, format_bytes(peak), format_bytes(report.minimum->budget),
      format_bytes(*options.budget),
      100.0 * static_cast<double>(options.budget->count()) / static_cast<double>(peak.count()));
  std::fflush(stdout);
}

int run(const RunFlags& flags, const OpenJob& open, RunReport& report) {
  const std::unique_ptr<Job> job = open(!flags.dry_run && !flags.on_simulator());
  report.batch = job->batch();
  const auto begin = std::chrono::steady_clock::now();
  const Program program = job->dry_run();
  SessionOptions options = plan(flags, program, report);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (flags.dry_run) {
    fmt::print("{}", need_table(report));
    check_budget(options, report);
    return kDone;
  }
  check_budget(options, report);
  options = feasible_schedule(options, program, *report.unmanaged, *report.minimum);
  // Now, so that a path that cannot be written is known before an hour of training.
  if (!flags.json.empty()) write_json(report, flags.json);
  announce(*job, report, options, took.count());
  const bool finished = train(flags, options, *job, report);
  fmt::print("{}", result_table(report));
  return finished ? int{kDone} : kInterruptedExitCode;
}

}  // namespace

int run_job(const std::string& program, const RunFlags& flags, const OpenJob& open) {
  RunReport report;
  report.program = program;
  report.flags = flags;
  int code = kFailed;
  try {
    code = run(flags, open, report);
  } catch (const InfeasibleBudget& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    code = kOutOfMemory;
  } catch (const OutOfMemory& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    code = kOutOfMemory;
  } catch (const UsageError& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return kBadInput;
  } catch (const DataError& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
  }
  if (!flags.json.empty()) {
    try {
      write_json(report, flags.json);
    } catch (const DataError& error) {
      fmt::print(stderr, "{}: {}\n", program, error.what());
      return kBadInput;
    }
  }
  return code;
}

}  // namespace tidemark
