#include "examples/common/run.h"

#include <malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "examples/common/console.h"
#include "examples/common/interrupt.h"
#include "examples/common/memory_limits.h"
#include "examples/common/output_file.h"
#include "examples/common/progress.h"
#include "examples/common/report.h"
#include "ops/register.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/process_memory.h"
#include "runtime/device/cpu/team.h"
#include "runtime/device/device.h"
#include "runtime/device/pages.h"
#include "runtime/executor/step_planner.h"
#include "runtime/memory/disk_file.h"
#include "runtime/residency/residency.h"
#include "runtime/schedule/fingerprint.h"
#include "runtime/schedule/schedule_json.h"
#include "runtime/session/algorithm_search.h"
#include "runtime/session/session.h"
#include "runtime/telemetry/tensorboard.h"
#include "runtime/telemetry/trace_writer.h"

namespace tidemark {
namespace {

constexpr size_t kTraceEvents = 1 << 19;
constexpr const char* kEstimateProfile = "a100-80gb";

MemoryFacts gather_facts(const RunFlags& flags, Bytes peak, Bytes loading) {
  MemoryFacts facts;
  facts.memory = allowed_memory(flags);
  if (flags.budget) facts.budget = flags.budget->resolve(peak);
  facts.host_limit = flags.policy == "none" ? Bytes(0) : flags.host_limit;
  if (!arena_is_in_ram(flags)) facts.device_memory = device_profile(flags.device).memory;
  facts.unmanaged_peak = peak;
  facts.loading = loading;
  facts.program = most_program_memory(flags);
  // A trace and plans take memory of their own, and limits of the process count what is mapped.
  if (flags.trace.empty() && flags.plan != true && memory_limits().empty()) {
    const Bytes most = kUntouchedProgram + compute_threads(flags.threads) * kThreadMemory;
    const Bytes now = resident_memory().value_or(most) - loading;
    if (now + kUntouchedGrowth <= most) facts.untouched_program = std::min(most, facts.program);
  }
  return facts;
}

// The work of choosing schedules for the budgets of a table and predicting steps in them.
int64_t predicting_limit(const UnmanagedNeed& need) { return 2 * need.work_limit(); }
// With --allow-rounding, besides, that of choosing the algorithms for a budget.
int64_t choosing_limit(const UnmanagedNeed& need) {
  return need.work_limit() + need.work_limit() / 2;
}

struct RunPlan {
  SessionOptions options;
  // The tables of algorithms to try, by --allow-rounding; empty: each call uses its default.
  std::vector<AlgorithmTable> tables;
  AlgorithmTable leanest;  // one of them
  MemoryFacts facts;
  MemoryLimits limits;
  bool disk_by_default = false;
};

// The smallest budget, with --allow-rounding that of the leanest algorithms; fills in the
// tables to try.
MinimumBudget find_minimum(RunPlan& plan, const RunFlags& flags, const Job& job,
                           const Program& program, const UnmanagedNeed& need) {
  if (!flags.allow_rounding) return find_minimum_budget(plan.options, program, need);
  if (const auto begun = job.algorithms()) {
    plan.leanest = *begun;
    plan.tables = {*begun};
  } else {
    const AlgorithmOffers offers = find_offers(plan.options, program);
    plan.leanest = leanest_table(offers);
    plan.tables = candidate_tables(offers);
  }
  const ChosenAlgorithms at = with_algorithms(plan.options, plan.leanest, program);
  return find_minimum_budget(at.options, program, at.need);
}

// Fills in what the run needs; returns the options that follow from it.
RunPlan plan(const RunFlags& flags, const Job& job, const Program& program, RunReport& report,
             DryRunLine* progress = nullptr) {
  RunPlan plan;
  plan.options = session_options(flags);
  SessionOptions& options = plan.options;
  report.unmanaged = measure_unmanaged(options, program);
  const UnmanagedNeed& need = *report.unmanaged;
  // Before training, predicting is the choice of one schedule and one prediction.
  constexpr int64_t kMostBudgets = 6;  // of predict()
  const int64_t choosing = flags.allow_rounding ? kMostBudgets * choosing_limit(need) : 0;
  if (progress) {
    progress->set_bound(need.search_work_limit() + predicting_limit(need) + choosing);
  }
  const Bytes peak = need.peak;
  report.loader_bytes = job.loading_bytes();
  report.arena_in_ram = arena_is_in_ram(flags);
  plan.facts = gather_facts(flags, peak, report.loader_bytes);
  plan.limits = derive_limits(plan.facts);
  options.unmanaged_peak = peak;
  options.host_limit = plan.limits.host;
  const DiskTierChoice disk = set_disk_tier(flags, peak, options);
  plan.disk_by_default = disk.by_default;
  if (!disk.note.empty()) print_error("{}\n", disk.note);
  options.budget = plan.limits.arena;
  report.minimum = find_minimum(plan, flags, job, program, need);
  if (plan.limits.is_limited) report.budget = options.budget;
  if (options.policy == "none") options.host_limit = options.disk_limit = Bytes(0);
  report.host_limit = options.host_limit;
  report.process_promised = plan.limits.promised;
  return plan;
}

// Throws InfeasibleBudget, InfeasibleMemory.
void check(const RunPlan& plan, const Program& program, const RunReport& report) {
  const bool managed = plan.options.policy != "none";
  std::string remedy;
  if (managed && *plan.options.budget < report.minimum->budget) {
    const auto disk = sufficient_disk(plan.options, program, *report.unmanaged);
    if (disk) {
      remedy = fmt::format("; with --disk-limit {} ({}) this budget is enough", disk->count(),
                           format_bytes(*disk));
    }
  }
  check_limits(plan.facts, plan.limits,
               managed ? report.minimum->budget : report.unmanaged->peak,
               !managed || report.minimum->is_least, remedy);
}

// The algorithms for the budget, by --allow-rounding, and the run's need with them.
ChosenAlgorithms choose_algorithms(const RunPlan& plan, const Program& program,
                                   const UnmanagedNeed& need) {
  if (plan.tables.empty()) return {plan.options, need};
  DryRunWork work(choosing_limit(need));
  auto found = quickest_algorithms(plan.options, plan.tables, program, work);
  return found ? *found : with_algorithms(plan.options, plan.leanest, program);
}

// The options of the run, with the algorithms and the tiers that are worth it, and the run's
// need with these algorithms. Fills in the report about them.
ChosenAlgorithms choose_schedule(const RunPlan& plan, const Program& program, RunReport& report,
                                 DryRunWork& work) {
  ChosenAlgorithms chosen = choose_algorithms(plan, program, *report.unmanaged);
  chosen.options =
      plan.disk_by_default
          ? feasible_schedule_sparing_disk(chosen.options, program, chosen.need,
                                           *report.minimum, &work)
          : feasible_schedule(chosen.options, program, chosen.need, *report.minimum, &work);
  const SessionOptions& options = chosen.options;
  report.schedule_stopped = work.stopped();
  report.schedule = schedule_of(options);
  report.disk_limit = options.disk_limit;
  report.disk_directory = options.disk_directory;
  return chosen;
}

// Predicts steps in the budgets that the flags ask for, or else in some between the unmanaged
// peak and the smallest budget.
void predict(const RunPlan& plan, const Program& program, RunReport& report) {
  const Bytes peak = report.unmanaged->peak, least = report.minimum->budget;
  std::vector<Bytes> budgets{peak};
  if (plan.limits.is_limited) {
    if (*plan.options.budget < peak) budgets.push_back(*plan.options.budget);
  } else if (plan.options.policy != "none") {
    for (const double share : {0.9, 0.7, 0.5, 0.3}) {
      if (share_of(peak, share) > least) budgets.push_back(share_of(peak, share));
    }
    if (least < peak) budgets.push_back(least);
  }
  // Each budget may take its part of the work that is left, half of it to choose a schedule.
  // The unmanaged step takes what it needs.
  const int64_t limit = predicting_limit(*report.unmanaged);
  DryRunWork all(limit);
  auto budgets_left = static_cast<int64_t>(budgets.size()) - 1;
  for (const Bytes budget : budgets) {
    RunPlan at = plan;
    at.options.budget = budget;
    const int64_t part = budget < peak ? all.left() / budgets_left-- : limit;
    DryRunWork choice(part / 2);
    const SessionOptions options = choose_schedule(at, program, report, choice).options;
    DryRunWork work(part - choice.done());
    const auto step = predict_step(options, program, &work);
    if (budget < peak) {
      all.add(choice);
      all.add(work);
    }
    const Bytes arena = report.arena_in_ram ? *options.budget : Bytes(0);
    const Bytes beside =
        budget < peak ? managed_beside(plan.facts, plan.limits) : plan.limits.beside;
    report.predictions.push_back({*options.budget, beside + arena, schedule_of(options), step,
                                  report.schedule_stopped || work.stopped()});
  }
}

void save_costs(const RunFlags& flags, Session& session) {
  if (flags.save_costs.empty()) return;
  CostTable table = session.costs().table();
  table.device = session.device().name();
  write_output(flags.save_costs, to_json(table));
}

// Why a run has ended without a schedule, and how to get one.
std::string why_no_schedule(const Session& session, const SessionOptions& options, Bytes peak) {
  const std::string none = "--save-schedule: there is no schedule to write, because ";
  if (*options.budget >= peak) {
    return none + "the step fits in the budget, so nothing is planned; give a --budget below " +
           format_bytes(peak);
  }
  if (!session.planner()) {
    return none + "policy " + options.policy + " decides in every step; give --plan auto";
  }
  return none +
         "the last steps ran under the policy; planning runs beside the training, so give more "
         "--steps, or run the same on --device sim:host";
}

void save_schedule(const RunFlags& flags, const SessionOptions& options, Bytes peak,
                   const Session& session, bool interrupted) {
  if (flags.save_schedule.empty()) return;
  const BoundSchedule* bound = session.planner() ? session.planner()->current() : nullptr;
  if (!bound) {
    const std::string why = why_no_schedule(session, options, peak);
    if (!interrupted) throw UsageError(why);
    print_error("{}\n", why);
    return;
  }
  write_output(flags.save_schedule, to_json(bound->trace, bound->schedule));
}

// A producer that always gives the schedule from the file.
auto given_schedule(const RunFlags& flags) {
  return [saved = flags.saved_schedule, file = flags.saved_schedule_file](
             const StepTrace& trace, const PlanLimits&,
             const std::vector<Bytes>&) -> std::optional<Schedule> {
    if (!same_program(saved->trace, trace)) {
      throw DataError(file, "is a schedule for a different step");
    }
    return saved->schedule;
  };
}

void save_trace(const RunFlags& flags, Session& session) {
  if (flags.trace.empty()) return;
  write_trace(
      session.events(), flags.trace,
      {.process = flags.model, .categories = {kCategoryNames.begin(), kCategoryNames.end()}});
}

// Runs actions at the end of a run, each of them even if others fail.
class Attempts {
 public:
  void operator()(const std::function<void()>& what) {
    try {
      what();
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
  }
  // Rethrows the first error, if there was one.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

void note_memory(const Session& session, RunReport& report) {
  report.peak_reserved = session.peak_reserved();
  report.peak_live = session.peak_live().total();
  report.peak_categories = session.peak_live();
  report.host_peak = session.host() ? session.host()->peak() : Bytes(0);
  report.disk_peak = session.disk() ? session.disk()->peak() : Bytes(0);
  if (!report.flags.on_simulator()) report.process_peak = peak_resident_memory();
}

// The process's memory now, without arena, tiers and loading.
std::optional<Bytes> program_memory(const Session& session, const RunReport& report) {
  std::optional<Bytes> left = resident_memory();
  if (!left) return std::nullopt;
  *left -= report.loader_bytes;
  if (report.arena_in_ram) *left -= session.peak_reserved();
  if (session.host()) *left -= session.host()->peak();
  if (session.disk()) *left -= kDiskStaging;
  return std::max(Bytes(0), *left);
}

PlanSummary plan_summary(Session& session) {
  const PlanCounts& counts = session.planner()->counts();
  PlanSummary summary{counts.planned_steps, counts.mismatches, {}};
  if (const BoundSchedule* bound = session.planner()->current();
      bound && counts.planned_steps > 0) {
    const Schedule& schedule = bound->schedule;
    const Bytes apart =
        schedule.residents_apart ? session.residency().storages().bytes_in_use() : Bytes(0);
    summary.followed = {.operators = bound->trace.ops.size(),
                        .peak = apart + schedule.peak,
                        .bound = apart + schedule.peak_bound,
                        .reordered = !in_program_order(schedule),
                        .releases = releases(schedule),
                        .is_partial = schedule.shortfall > Bytes(0),
                        .seconds = bound->seconds,
                        .ample_time = schedule.ample_time,
                        .time = bound->time,
                        .time_bound = schedule.time_bound,
                        .any_order_bound = schedule.any_order_bound,
                        .made_from = bound->made_from,
                        .schedule = fingerprint(schedule)};
  }
  return summary;
}

// Writes the scalars of --tensorboard; does nothing without the flag, or once a file could not
// be written: that is no reason to lose the training.
class Board {
 public:
  explicit Board(const std::string& folder) {
    if (!folder.empty()) writer_.emplace(folder);
  }
  void add(int64_t step, const StepOutcome& outcome, const StepStats& stats,
           std::optional<double> validation_loss) {
    if (!writer_) return;
    std::vector<Scalar> scalars{
        {"speed/step_ms", static_cast<float>(to_ms(stats.duration))},
        {"memory/arena_peak_mib", static_cast<float>(to_mib(stats.peak_reserved))},
        {"memory/released_mib",
         static_cast<float>(to_mib(stats.evicted_bytes + stats.offload_bytes))}};
    if (outcome.loss) scalars.push_back({"train/loss", *outcome.loss});
    if (outcome.correct && outcome.guesses > 0) {
      scalars.push_back({"train/accuracy", static_cast<float>(*outcome.correct) /
                                               static_cast<float>(outcome.guesses)});
    }
    if (outcome.tokens > 0 && stats.duration > Nanos(0)) {
      scalars.push_back(
          {"speed/tokens_per_s", static_cast<float>(static_cast<double>(outcome.tokens) /
                                                    to_seconds(stats.duration))});
    }
    if (validation_loss) {
      scalars.push_back({"validation/loss", static_cast<float>(*validation_loss)});
    }
    write(step, scalars);
  }
  // Of a validation after the last step.
  void add_last(int64_t step, const Evaluation& evaluation) {
    for (const auto& [name, value] : evaluation.scores) {
      if (name == "loss") write(step, {{"validation/loss", static_cast<float>(value)}});
    }
  }

 private:
  void write(int64_t step, const std::vector<Scalar>& scalars) {
    if (!writer_) return;
    try {
      writer_->add(step, scalars);
    } catch (const DataError& error) {
      print_error("--tensorboard: {}; no more is written\n", error.what());
      writer_.reset();
    }
  }

  std::optional<TensorBoardWriter> writer_;
};

// Runs steps until `job`'s last, or until training is finished or interrupted. Returns how many
// are complete.
int64_t run_steps(const Job& job, Training& training, Session& session,
                  const InterruptScope& interrupt, ProgressLine& progress, Board& board,
                  RunReport& report) {
  int64_t done = report.first_step;
  while (done < job.steps() && !training.finished() && !interrupt.requested()) {
    StepOutcome outcome;
    training.prepare(done);
    const StepStats stats = session.step([&] { outcome = training.step(); });
    report.steps.push_back({outcome.loss, stats, outcome.tokens});
    if (!report.program_memory) report.program_memory = program_memory(session, report);
    progress.step(stats, outcome);
    const std::optional<double> validation_loss = training.after_step(++done);
    if (validation_loss) {
      report.steps.back().validation_loss = validation_loss;
      progress.note(fmt::format("step {}: validation loss {:.4f}", done, *validation_loss));
    }
    board.add(done, outcome, stats, validation_loss);
  }
  if (done < job.steps() && training.finished()) {
    progress.note("the validation loss no longer falls: training ends");
  }
  return done;
}

// Returns true if the run ended, false if it was interrupted.
bool train(const RunFlags& flags, const SessionOptions& options, const Job& job,
           const InterruptScope& interrupt, RunReport& report) {
  Session session(options);
  ProgressLine* shown = nullptr;
  if (session.planner() || flags.saved_schedule) {
    PlanOptions plan = session.default_plan_options();
    if (flags.saved_schedule) plan.producer = given_schedule(flags);
    plan.time_bound = true;
    plan.report = [&shown](std::string_view what) {
      if (shown) shown->note("plan: " + std::string(what));
    };
    session.plan_steps(std::move(plan));
    session.planner()->on_planning([&shown] {
      if (shown) shown->planning();
    });
  }
  try {
    const std::unique_ptr<Training> training = job.start();
    int64_t done = report.first_step = training->first_step();
    Board board(flags.tensorboard);
    {
      ProgressLine progress(stderr, job.steps(), *options.budget, done);
      shown = &progress;
      done = run_steps(job, *training, session, interrupt, progress, board, report);
      shown = nullptr;
    }
    if (session.planner()) {
      if (!interrupt.requested()) session.planner()->compute_bounds();
      report.plan = plan_summary(session);
    }
    Attempts attempt;
    attempt([&] { training->stop(done); });
    attempt([&] { save_costs(flags, session); });
    attempt([&] {
      save_schedule(flags, options, report.unmanaged->peak, session, interrupt.requested());
    });
    attempt([&] { report.params_checksum = training->checksum(); });
    attempt([&] {
      if (interrupt.requested()) return;
      report.evaluation = training->evaluate(session);
      const bool is_known = !report.steps.empty() && report.steps.back().validation_loss;
      if (!is_known) board.add_last(done, report.evaluation);
    });
    note_memory(session, report);
    attempt([&] { save_trace(flags, session); });
    print_out("{}", result_table(report));
    attempt.rethrow();
    if (interrupt.requested())
      print_error("interrupted after step {} of {}\n", done, job.steps());
    return !interrupt.requested();
  } catch (...) {
    note_memory(session, report);
    throw;
  }
}

// "a GiB of arena, b MiB of loading": the parts of the promised total.
std::string promised_parts(const RunReport& report, Bytes arena) {
  std::string text;
  if (report.arena_in_ram) text += "arena " + format_bytes(arena) + ", ";
  if (report.host_limit > Bytes(0)) {
    text += "host tier " + format_bytes(report.host_limit) + ", ";
  }
  if (report.loader_bytes > Bytes(0)) {
    text += "loading " + format_bytes(report.loader_bytes) + ", ";
  }
  const Bytes program = *report.process_promised - report.host_limit - report.loader_bytes -
                        (report.arena_in_ram ? arena : Bytes(0));
  return text + "program " + format_bytes(program);
}

void announce(const Job& job, const RunReport& report, const SessionOptions& options,
              double seconds) {
  const std::string steps =
      job.steps() > 0 ? fmt::format("; {} steps of batch {}", job.steps(), job.batch()) : "";
  print_out("{}{} on {}{}\n", job.announcement(), steps, options.device,
            report.flags.dtype == DType::kFloat32
                ? ""
                : fmt::format(", in {}", to_string(report.flags.dtype)));
  const Bytes peak = report.unmanaged->peak;
  print_out("dry run ({:.2f} s)\n", seconds);
  if (!report.flags.on_simulator()) {
    const Bytes arena = std::min(*options.budget, peak);
    print_out("process: at most {} ({})", format_bytes(*report.process_promised),
              promised_parts(report, arena));
    if (report.arena_in_ram && arena < peak) {
      const Bytes unmanaged = *report.process_promised - report.host_limit - arena + peak;
      print_out("; without a budget at most {}", format_bytes(unmanaged));
    }
    print_out("\n");
  }
  print_out(
      "arena:   {} without a budget, at least {}; the budget is {} ({:.1f} %)\n",
      format_bytes(peak), format_bytes(report.minimum->budget), format_bytes(*options.budget),
      100.0 * static_cast<double>(options.budget->count()) / static_cast<double>(peak.count()));
  if (report.predicted) {
    const StepPrediction& step = *report.predicted;
    const Bytes moved = step.step.offload_bytes;
    print_out("disk:    about {} written and {} read each step{}, {} of it in use\n",
              format_bytes(moved), format_bytes(step.step.reload_bytes),
              options.disk_directory.empty() ? "" : ", in " + options.disk_directory,
              format_bytes(step.disk_peak));
  }
  if (report.other_algorithms) {
    print_out("rounding: {} kinds of calls use another algorithm than their default\n",
              *report.other_algorithms);
  }
  print_out("{}", stand_in_note(report.flags.policy, *report.schedule));
  const bool plans = options.policy == "tide" && options.plan.value_or(true) &&
                     *options.budget < peak && job.steps() > 0;
  if (!plans) return;
  print_out("{}", planning_note(!report.flags.on_simulator() && options.residency.learn_costs &&
                                !options.costs));
}

// A dry run for a GPU is exact on a machine with that GPU; elsewhere it estimates by a GPU's
// profile. Other runs need the GPU, which is checked before any data is read. Returns the flags
// to continue with.
RunFlags settle_device(RunFlags flags, RunReport& report) {
  const bool dry_run_for_gpu = flags.dry_run && flags.on_cuda();
  if (!flags.profile.empty() && !dry_run_for_gpu) {
    throw UsageError(
        "--profile needs --device cuda and --dry-run; to simulate a run, use --device "
        "sim:PROFILE");
  }
  if (!flags.on_cuda()) return flags;
  std::string profile = flags.profile;
  if (profile.empty()) {
    try {
      device_profile(flags.device);
    } catch (const NoGpuError& error) {
      if (!dry_run_for_gpu) throw;
      report.no_gpu = error.what();
      profile = kEstimateProfile;
    }
  }
  // Until scripts/gpu_check.sh has run on a GPU with the sources of today.
  print_out(
      "The CUDA device is experimental: no GPU has run what changed since commit 98da89a.\n"
      "Please run `scripts/gpu_check.sh RESULTS` and attach its report to an issue.\n");
  if (profile.empty()) return flags;
  report.estimated_by = profile;
  flags.device = "sim:" + profile;
  return flags;
}

// Missing memory is reported now: later, the kernel would end the process when its pages are
// touched, and under a limit (ulimit -v, -d) libraries would end it as well. Throws
// HostMemoryError.
void check_host_memory(const RunPlan& plan, const RunReport& report) {
  const SessionOptions& options = plan.options;
  if (options.device != "cpu") return;
  const Bytes arena = std::min(*options.budget, report.unmanaged->peak);
  const Bytes program = anonymous_memory().value_or(Bytes(0));
  const Bytes certain = arena + report.loader_bytes + program;
  const std::optional<MemoryCeiling> most = memory_ceiling();
  if (most && certain > most->memory) {
    MemoryFacts facts = plan.facts;
    facts.budget.reset();
    const Bytes least = least_memory(
        facts, plan.limits,
        options.policy == "none" ? report.unmanaged->peak : report.minimum->budget);
    throw HostMemoryError(fmt::format(
        "training takes {} in the arena, {} for loading data and {} for the program so far, "
        "but "
        "{} has {} of memory and swap space; use a smaller --budget or --batch, or at least "
        "--memory {} ({})",
        format_bytes(arena), format_bytes(report.loader_bytes), format_bytes(program),
        most->what, format_bytes(most->memory), least.count(), format_bytes(least)));
  }
  if (most && *report.process_promised > most->memory && most->what != "this machine") {
    print_error("{}: training may take {}, but {} has {}; --memory auto stays within it\n",
                report.program, format_bytes(*report.process_promised), most->what,
                format_bytes(most->memory));
  }
  if (memory_limits().empty()) return;
  // The program has used part of its own share by now.
  const Bytes rest = std::max(
      Bytes(0), most_program_memory(report.flags) - resident_memory().value_or(Bytes(0)));
  map_pages(*options.budget + options.host_limit + rest,
            fmt::format(" for a budget of {}, {} to offload to and {} for the program itself",
                        format_bytes(*options.budget), format_bytes(options.host_limit),
                        format_bytes(rest)));
}

void note_smaller_batch(const Job& job, const RunReport& report) {
  if (job.batch() >= report.flags.batch) return;
  print_error("{}: --batch {} is larger than the data set; a step takes all {} samples\n",
              report.program, report.flags.batch, job.batch());
}

int run(const RunFlags& given, const OpenJob& open, RunReport& report) {
  const RunFlags flags = settle_device(given, report);
  const std::unique_ptr<Job> job = open(!flags.dry_run && !flags.on_simulator());
  report.batch = job->batch();
  note_smaller_batch(*job, report);
  const auto begin = std::chrono::steady_clock::now();
  const Program program = job->dry_run();
  auto progress = std::make_optional<DryRunLine>(stderr);
  const RunPlan memory = plan(flags, *job, program, report, &*progress);
  if (flags.dry_run) {
    // If the run is refused, its needs are reported but no step.
    const bool feasible =
        *memory.options.budget >=
        (flags.policy == "none" ? report.unmanaged->peak : report.minimum->budget);
    if (feasible) predict(memory, program, report);
    progress.reset();
    print_out("{}", need_table(report));
    check(memory, program, report);
    return kDone;
  }
  check(memory, program, report);
  ::malloc_trim(0);  // memory of simulations would count as in use in the next line
  check_host_memory(memory, report);
  DryRunWork work(report.unmanaged->work_limit());
  const ChosenAlgorithms chosen = choose_schedule(memory, program, report, work);
  const SessionOptions& options = chosen.options;
  report.unmanaged = chosen.need;
  if (options.algorithms) report.other_algorithms = options.algorithms->size();
  const bool writes_disk =
      options.disk_limit > Bytes(0) && *options.budget < report.unmanaged->peak;
  if (writes_disk) {
    DryRunWork predicting(work.max());
    report.predicted = predict_step(options, program, &predicting);
  }
  progress.reset();
  ::malloc_trim(0);  // training does not need the memory of simulations
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  // Checked now, so that a path that cannot be written fails before an hour of training.
  for (const std::string& path :
       {flags.json, flags.trace, flags.save_costs, flags.save_schedule}) {
    if (!path.empty()) check_writable(path);
  }
  const InterruptScope interrupt;  // from the first message on, loading weights included
  announce(*job, report, options, took.count());
  return train(flags, options, *job, interrupt, report) ? int{kDone} : kInterruptedExitCode;
}

}  // namespace

SessionOptions session_options(const RunFlags& flags) {
  SessionOptions options;
  options.device = flags.device;
  register_cuda_kernels();  // for cuda and sim:cuda; costs nothing
  options.threads = flags.threads;
  options.tf32 = flags.tf32;
  options.policy = flags.policy;
  options.plan = flags.plan;
  options.delta = flags.delta;
  options.residency.overlap = flags.overlap;
  options.costs = flags.costs;
  options.seed = flags.seed;
  if (!flags.trace.empty()) {
    options.event_capacity = kTraceEvents;
    options.residency.time_all = true;
  }
  return options;
}

std::optional<Bytes> allowed_memory(const RunFlags& flags) {
  if (!flags.memory) return std::nullopt;
  if (flags.memory->bytes) return flags.memory->bytes;
  const auto found = auto_memory(resident_memory().value_or(Bytes(0)), memory_bounds());
  if (!found) throw UsageError("--memory auto: the system does not report free memory");
  print_out("--memory auto: {}, limited by {}, with {} left for others\n",
            format_bytes(found->memory), found->bound, format_bytes(found->margin));
  return found->memory;
}

bool arena_is_in_ram(const RunFlags& flags) {
  if (flags.device == "cpu") return true;
  return flags.on_simulator() && device_profile(flags.device).backend == Backend::kCpu;
}

Bytes most_program_memory(const RunFlags& flags) {
  // A dry run promises what the GPU's run will.
  return kProgramMemory + (arena_is_in_ram(flags) ? Bytes(0) : kCudaMemory);
}

DiskTierChoice set_disk_tier(const RunFlags& flags, Bytes unmanaged_peak,
                             SessionOptions& options) {
  DiskTierChoice choice{.by_default = !flags.disk_limit && arena_is_in_ram(flags)};
  options.disk_limit = flags.disk_limit.value_or(Bytes(0));
  options.disk_directory = flags.disk_directory;
  // As much as feasible_schedule() needs to be sure of any policy; a run rarely fills half of
  // it.
  if (choice.by_default) options.disk_limit = 2 * unmanaged_peak;
  if (options.disk_limit == Bytes(0) || flags.on_simulator()) return choice;
  if (options.disk_directory.empty()) {
    const std::optional<std::string> directory = default_disk_directory();
    const std::string none =
        "neither TMPDIR nor /var/tmp nor the current folder is on a disk (they are in RAM, or "
        "cannot be written); name another with --disk-directory";
    if (!directory && !choice.by_default) throw UsageError("--disk-limit: " + none);
    if (!directory) {
      options.disk_limit = Bytes(0);
      choice.note = "no disk tier: " + none;
      return choice;
    }
    options.disk_directory = *directory;
  }
  const std::optional<Bytes> free = free_disk_space(options.disk_directory);
  if (!free) throw UsageError("--disk-directory: there is no folder " + options.disk_directory);
  const Bytes spare = spare_disk_space(options.disk_limit, *free);
  if (spare < options.disk_limit) {
    choice.note = fmt::format("{} has {} free: the disk tier is at most {} instead of {}",
                              options.disk_directory, format_bytes(*free), format_bytes(spare),
                              format_bytes(options.disk_limit));
    options.disk_limit = spare;
  }
  return choice;
}

RunForecast forecast(const RunFlags& given, const Job& job, bool with_ample) {
  RunReport report;
  const RunFlags flags = settle_device(given, report);
  const Program program = job.dry_run();
  const RunPlan at = plan(flags, job, program, report);
  RunForecast forecast{.peak = report.unmanaged->peak,
                       .least = report.minimum->budget,
                       .is_least = report.minimum->is_least,
                       .arena = std::min(*at.options.budget, report.unmanaged->peak),
                       .process = *report.process_promised};
  const auto step_in = [&](Bytes arena) -> std::optional<Nanos> {
    if (arena < forecast.least) return std::nullopt;
    RunPlan other = at;
    other.options.budget = arena;
    DryRunWork choice(report.unmanaged->work_limit()), work(choice.max());
    const SessionOptions options = choose_schedule(other, program, report, choice).options;
    const auto step = predict_step(options, program, &work);
    if (!step || step->rounds == 0) return std::nullopt;
    return step->step.duration;
  };
  const bool is_ample = forecast.arena >= forecast.peak;
  if (with_ample || is_ample) forecast.ample_step = step_in(forecast.peak);
  forecast.step = is_ample ? forecast.ample_step : step_in(forecast.arena);
  return forecast;
}

int run_job(const std::string& program, const RunFlags& flags, const OpenJob& open) {
  RunReport report;
  report.program = program;
  report.flags = flags;
  const int code = explain_errors(program, [&] { return run(flags, open, report); });
  if (flags.json.empty()) return code;
  // The report is worth writing even if a file could not be written in the end.
  if (code == kBadInput && report.steps.empty()) return code;
  return explain_errors(program, [&] {
    write_json(report, flags.json);
    return code;
  });
}

}  // namespace tidemark
