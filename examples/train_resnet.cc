// Trains a ResNet under a memory budget and says what that took. `train_resnet --help`
// explains.
//
//   $ train_resnet --budget 50%
//
// How it goes: a dry run on the simulator (models/dry_run.h) gives the unmanaged peak and the
// smallest feasible budget; a session of exactly the budget is made; each batch is one step of
// it.
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include "examples/common/data_source.h"
#include "examples/common/flags.h"
#include "examples/common/image_training.h"
#include "examples/common/interrupt.h"
#include "examples/common/process_memory.h"
#include "examples/common/progress.h"
#include "examples/common/report.h"
#include "models/data/loader.h"
#include "models/dry_run.h"
#include "runtime/core/errors.h"
#include "runtime/device/profile.h"
#include "runtime/session/session.h"
#include "runtime/telemetry/trace_writer.h"

namespace tidemark {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kBadInput = 2, kOutOfMemory = 3 };

constexpr size_t kTraceEvents = 1 << 19;

bool on_simulator(const TrainFlags& flags) { return flags.device.starts_with("sim:"); }

SessionOptions session_options(const TrainFlags& flags) {
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
SessionOptions plan(const TrainFlags& flags, const Program& program, RunReport& report) {
  SessionOptions options = session_options(flags);
  report.unmanaged = measure_unmanaged(options, program);
  const Bytes peak = report.unmanaged->peak;
  options.unmanaged_peak = peak;
  options.host_limit = flags.host_limit.value_or(2 * peak);
  report.minimum = find_minimum_budget(options, program, *report.unmanaged);

  if (flags.budget) {
    report.budget = flags.budget->resolve(peak);
  } else if (on_simulator(flags)) {
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

// Batches for as long as they are asked for, epoch after epoch; of sizes alone without a
// dataset.
class BatchSource {
 public:
  BatchSource(const DataSource& data, const Schedule& schedule, uint64_t seed)
      : data_(data), schedule_(schedule) {
    if (!data.train) return;
    loader_ = std::make_unique<Loader>(
        data.train, LoaderOptions{.batch = schedule.batch, .shuffle = true, .seed = seed});
  }
  HostBatch next() {
    if (!loader_) return shape_only(data_.sample, schedule_.batch_of(step_++));
    std::optional<HostBatch> batch = loader_->next();
    if (!batch) batch = loader_->next();
    return *std::move(batch);
  }
  Bytes bytes() const {
    return loader_ ? loader_->buffer_bytes() + data_.train->resident_bytes() : Bytes(0);
  }

 private:
  const DataSource& data_;
  const Schedule& schedule_;
  std::unique_ptr<Loader> loader_;
  int64_t step_ = 0;
};

double evaluate(Session& session, ImageTraining& training, const DataSource& data,
                int64_t batch) {
  Loader loader(data.test, {.batch = std::min(batch, data.test_size)});
  int64_t correct = 0;
  while (const std::optional<HostBatch> images = loader.next()) {
    session.step([&] { correct += training.evaluate(*images).correct.value_or(0); });
  }
  return static_cast<double>(correct) / static_cast<double>(data.test_size);
}

// True if it ran to the end, false if it was interrupted.
bool train(const TrainFlags& flags, const SessionOptions& options, const DataSource& data,
           const Schedule& schedule, RunReport& report) {
  Session session(options);
  try {
    ImageTraining training(flags, data);
    const InterruptScope interrupt;
    {
      BatchSource batches(data, schedule, flags.seed);
      report.loader_bytes = batches.bytes();
      ProgressLine progress(stderr, schedule.steps, *options.budget);
      for (int64_t i = 0; i < schedule.steps && !interrupt.requested(); ++i) {
        StepOutcome outcome;
        const HostBatch batch = batches.next();
        training.set_learning_rate(i, schedule.steps);
        const StepStats& stats = session.step([&] { outcome = training.train(batch); });
        report.steps.push_back({outcome.loss, stats});
        progress.step(stats, outcome.loss, outcome.correct, batch.size);
      }
    }
    report.params_checksum = training.checksum();
    if (data.test && !interrupt.requested()) {
      report.accuracy = evaluate(session, training, data, schedule.batch);
    }
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

void announce(const TrainFlags& flags, const DataSource& data, const Schedule& schedule,
              const RunReport& report, const SessionOptions& options, double seconds) {
  fmt::print("{} on {}, images of {}x{}x{}, {} classes; {} steps of batch {} on {}\n",
             flags.model, flags.data, data.sample[0], data.sample[1], data.sample[2],
             data.classes, schedule.steps, schedule.batch, flags.device);
  const Bytes peak = report.unmanaged->peak;
  fmt::print(
      "dry run ({:.2f} s): {} without a budget, at least {}; the budget is {} ({:.1f} %)\n",
      seconds, format_bytes(peak), format_bytes(report.minimum->budget),
      format_bytes(*options.budget),
      100.0 * static_cast<double>(options.budget->count()) / static_cast<double>(peak.count()));
  std::fflush(stdout);
}

int run(const TrainFlags& flags, RunReport& report) {
  const bool reads_data = !flags.dry_run && !on_simulator(flags);
  const DataSource data = reads_data ? open_data(flags) : describe_data(flags);
  const Schedule schedule = make_schedule(flags, data);
  report.batch = schedule.batch;
  const auto begin = std::chrono::steady_clock::now();
  const Program program = training_program(flags, data, schedule);
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
  announce(flags, data, schedule, report, options, took.count());
  const bool finished = train(flags, options, data, schedule, report);
  fmt::print("{}", result_table(report));
  return finished ? int{kDone} : kInterruptedExitCode;
}

int explain(const TrainFlags& flags) {
  RunReport report;
  report.flags = flags;
  int code = kFailed;
  try {
    code = run(flags, report);
  } catch (const InfeasibleBudget& error) {
    fmt::print(stderr, "train_resnet: {}\n", error.what());
    code = kOutOfMemory;
  } catch (const OutOfMemory& error) {
    fmt::print(stderr, "train_resnet: {}\n", error.what());
    code = kOutOfMemory;
  } catch (const UsageError& error) {
    fmt::print(stderr, "train_resnet: {}\n", error.what());
    return kBadInput;
  } catch (const DataError& error) {
    fmt::print(stderr, "train_resnet: {}\n", error.what());
    return kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_resnet: {}\n", error.what());
  }
  if (!flags.json.empty()) {
    try {
      write_json(report, flags.json);
    } catch (const DataError& error) {
      fmt::print(stderr, "train_resnet: {}\n", error.what());
      return kBadInput;
    }
  }
  return code;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  int exit_code = 0;
  const std::optional<tidemark::TrainFlags> flags =
      tidemark::parse_flags(argc, argv, exit_code);
  return flags ? tidemark::explain(*flags) : exit_code;
}
