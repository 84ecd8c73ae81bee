// Finds the largest batch that trains within a budget, proves it, and soaks the session with
// steps of random shapes. `stress_batch --help` explains.
//
//   $ stress_batch --model resnet50 --device sim:a100-80gb
//   ...
//   largest batch 5349: 5.2x the 1037 that fit without management
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "examples/common/batch_search.h"
#include "examples/common/bert_flags.h"
#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "examples/common/interrupt.h"
#include "examples/common/memory_limits.h"
#include "examples/common/output_file.h"
#include "examples/common/report.h"
#include "examples/common/run.h"
#include "examples/common/shaped_training.h"
#include "examples/common/soak.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/process_memory.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProgram = "stress_batch";

constexpr const char* kDescription =
    R"(Finds the largest batch that trains within a budget, on synthetic data.

Dry runs on the simulator narrow it down; training steps on --device, optimizer included, then
confirm it. If a batch fails nevertheless, a smaller one is tried in a new session.

This is for networks for images. For text networks, such as bert-base, see
  stress_batch --model bert-base --help)";

constexpr const char* kFooter = R"(
Takes the flags of train_resnet or train_bert, depending on --model, except those about length and
results; --data gives only the shape of images. --budget 50% is a share of the device's memory here;
on a CPU, --memory may be given instead.

Examples:
  How much larger can ResNet-50's batch be on an A100, and at what speed?
    stress_batch --model resnet50 --device sim:a100-80gb
  BERT-base within 4 GiB, a tenth left free, then ten minutes of random batches and lengths:
    stress_batch --model bert-base --budget 4GiB --margin 0.1 --minutes 10

Exit codes: 0 done; 1 memory was not flat, or a step of the soak ran out of it; 2 usage or bad
input; 3 not even batch 1 fits; 130 interrupted.)";

// Steps with the largest batch that fits without management, to compare speeds.
constexpr int64_t kBaselineSteps = 5;
// Simulated steps after which policies have learnt all they can.
constexpr int64_t kSpeedSteps = 20;

struct StressFlags {
  double margin = 0;
  int64_t prove = 50;
  int64_t largest = 1 << 20;
  double least_speed = 0;
  std::optional<double> minutes;
  std::optional<int64_t> soak_steps;
};

struct Interrupted {};

Json bytes_or_null(Bytes bytes) {
  return bytes > Bytes(0) ? Json(bytes.count()) : Json(nullptr);
}

// `steps`: what its steps are called on this device.
Json to_json(const BatchTrial& trial, const char* steps) {
  const bool proof = trial.kind == BatchTrial::Kind::kProof;
  Json json;
  json["kind"] = proof                                        ? steps
                 : trial.kind == BatchTrial::Kind::kUnmanaged ? "unmanaged"
                                                              : "dry-run";
  json["batch"] = trial.batch;
  json["fits"] = trial.fits;
  if (proof) {
    json["steps"] = trial.proof.steps;
    json["ms"] = to_ms(trial.proof.step_time);
    json["peak_reserved_bytes"] = trial.proof.peak.count();
    json["failure"] = trial.fits ? Json(nullptr) : Json(trial.proof.failure);
  } else {
    json["unmanaged_peak_bytes"] = bytes_or_null(trial.need.unmanaged);
    json["minimum_budget_bytes"] = bytes_or_null(trial.need.minimum);
    json["speed"] = trial.need.speed;
  }
  return json;
}

Json to_json(const SoakSample& sample) {
  return {{"scattered", sample.scattered},  {"reserved_over_live", sample.spread},
          {"moves", sample.moves},          {"host_bytes", sample.host_used},
          {"storages", sample.kept},        {"process_bytes", sample.process},
          {"process_own_bytes", sample.own}};
}

Json to_json(const SoakReport& soak) {
  return {{"steps", soak.steps},
          {"out_of_memory", soak.out_of_memory},
          {"seconds", soak.seconds},
          {"peak_reserved_bytes", soak.peak.count()},
          {"host_peak_bytes", soak.host_peak.count()},
          {"first_tenth", to_json(soak.first)},
          {"middle_tenth", to_json(soak.middle)},
          {"last_tenth", to_json(soak.last)},
          {"long_enough", soak.long_enough()},
          {"flat", soak.flat()}};
}

// `proof`: what the steps of a proof are, real or simulated.
void print_trial(const BatchTrial& trial, std::string_view proof) {
  switch (trial.kind) {
    case BatchTrial::Kind::kUnmanaged:
      print_out("  {:<10}{:>9}{:>18}{:>18}  {}\n", "unmanaged", trial.batch,
                format_bytes(trial.need.unmanaged), "", trial.fits ? "fits" : "too large");
      break;
    case BatchTrial::Kind::kDryRun:
      print_out("  {:<10}{:>9}{:>18}{:>18}  {}\n", "dry run", trial.batch,
                format_bytes(trial.need.unmanaged), format_bytes(trial.need.minimum),
                trial.fits ? "fits"
                : trial.need.speed < 1
                    ? fmt::format("too slow: {:.0f} %", 100 * trial.need.speed)
                    : "too large");
      break;
    case BatchTrial::Kind::kProof:
      if (trial.fits) {
        print_out("  {:<10}{:>9}  trained {} steps, {:.1f} ms each, in {}\n", proof,
                  trial.batch, trial.proof.steps, to_ms(trial.proof.step_time),
                  format_bytes(trial.proof.peak));
      } else {
        const std::string& why = trial.proof.failure;
        print_out("  {:<10}{:>9}  failed in step {}: {}\n", proof, trial.batch,
                  trial.proof.steps + 1, why.substr(0, why.find('\n')));
      }
      break;
  }
}

void print_soak(const SoakReport& soak) {
  const auto row = [&](const char* what, const auto& text, double SoakSample::*value) {
    print_out("  {:<40}{:>14}{:>14}{:>14}\n", what, text(soak.first.*value),
              text(soak.middle.*value), text(soak.last.*value));
  };
  const auto bytes = [](double count) {
    return format_bytes(Bytes(static_cast<int64_t>(count)));
  };
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  print_out(
      "\nsoak: {} steps of random shapes in {:.0f} s, {} out of memory; arena {}, host {}\n",
      soak.steps, soak.seconds, soak.out_of_memory, format_bytes(soak.peak),
      format_bytes(soak.host_peak));
  print_out("  {:<40}{:>14}{:>14}{:>14}\n", "mean of a tenth", "first", "middle", "last");
  row("unused, outside of the largest hole", percent, &SoakSample::scattered);
  row(
      "reserved over live", [](double x) { return fmt::format("{:.3f}", x); },
      &SoakSample::spread);
  row(
      "blocks moved in a step", [](double x) { return fmt::format("{:.1f}", x); },
      &SoakSample::moves);
  row("host tier", bytes, &SoakSample::host_used);
  row(
      "storages kept", [](double x) { return fmt::format("{:.0f}", x); }, &SoakSample::kept);
  row("process", bytes, &SoakSample::process);
  row(" of it outside arena, tier and data", bytes, &SoakSample::own);
  print_out("memory is {}", soak.flat() ? "flat" : "NOT flat");
  if (!soak.long_enough()) {
    print_out(", as far as {} steps show: moves and the process need {} to judge", soak.steps,
              SoakReport::kEnough);
  }
  print_out("\n");
}

class Stress {
 public:
  Stress(const RunFlags& flags, const StressFlags& stress, const ShapedJob& job)
      : flags_(flags), stress_(stress), job_(job) {
    report_.program = kProgram;
    report_.flags = flags;
  }

  int run() {
    const Bytes memory = make_device(flags_.device, {.threads = 1})->profile().memory;
    memory_ = allowed_memory(flags_);
    if (flags_.device == "cpu" && !flags_.budget && !memory_) {
      throw UsageError("--budget or --memory: how much of this machine's " +
                       format_bytes(memory) + " may training take?");
    }
    const Bytes all = flags_.budget ? flags_.budget->resolve(memory) : align_down(memory);
    budget_ = align_down(share_of(all, 1 - stress_.margin));
    if (memory_ && stress_.margin > 0) memory_ = share_of(*memory_, 1 - stress_.margin);
    report_.budget = budget_;
    // Checked now, so that a path that cannot be written fails at the beginning.
    if (!flags_.json.empty()) check_writable(flags_.json);
    print_out("{} on {}", job_.announcement(), flags_.device);
    if (memory_) print_out("; the process takes at most {}", format_bytes(*memory_));
    if (!memory_ || flags_.budget || !arena_is_in_ram(flags_)) {
      print_out("; budget {}", format_bytes(budget_));
      if (stress_.margin > 0) print_out(" of {}", format_bytes(all));
    }
    print_out("\n\n  {:<10}{:>9}{:>18}{:>18}\n", "trial", "batch", "without a budget",
              "least it needs");
    int code = kDone;
    try {
      code = search();
    } catch (const Interrupted&) {
      code = kInterruptedExitCode;
    }
    write();
    return code;
  }

 private:
  StepShape shape(int64_t batch) const { return {batch, job_.shape().size}; }
  Program program(int64_t batch) const { return shaped_program(job_, {shape(batch)}); }

  // The most that the arena may take with this batch. Without a limit on the process, or with
  // an arena outside RAM, it is the same for all batches; 0 if the batch's data alone exceed
  // the limit.
  Bytes budget(int64_t batch) const {
    if (!memory_) return budget_;
    const Bytes left = *memory_ - flags_.host_limit.value_or(Bytes(0)) -
                       job_.data_bytes(shape(batch)) - most_program_memory(flags_);
    if (left < Bytes(0)) return Bytes(0);
    return arena_is_in_ram(flags_) ? std::min(budget_, align_down(left)) : budget_;
  }
  MemoryFacts facts(int64_t batch, Bytes peak) const {
    MemoryFacts facts;
    facts.memory = memory_;
    facts.budget = budget(batch);
    facts.host_limit = flags_.policy == "none" ? Bytes(0) : flags_.host_limit;
    if (!arena_is_in_ram(flags_)) facts.device_memory = budget_;
    facts.unmanaged_peak = peak;
    facts.loading = job_.data_bytes(shape(batch));
    facts.program = most_program_memory(flags_);
    return facts;
  }

  SessionOptions options(int64_t batch, const UnmanagedNeed& need) const {
    SessionOptions options = session_options(flags_);
    const MemoryLimits limits = derive_limits(facts(batch, need.peak));
    options.budget = limits.arena;
    options.unmanaged_peak = need.peak;
    options.host_limit = limits.host;
    if (!flags_.host_limit && !arena_is_in_ram(flags_) && !flags_.on_simulator()) {
      // Pages of the host tier are taken as needed, but all of them may be.
      const Bytes available = available_memory().value_or(options.host_limit);
      options.host_limit = std::min(share_of(available, 0.8), options.host_limit);
    }
    set_disk_tier(flags_, need.peak, options);
    if (flags_.policy == "none") options.host_limit = options.disk_limit = Bytes(0);
    return options;
  }

  void check_interrupt() const {
    if (interrupt_.requested()) throw Interrupted{};
  }

  // Results of a batch's dry run.
  struct Known {
    UnmanagedNeed need;
    MinimumBudget minimum;
  };
  Known look_at(int64_t batch) const {
    check_interrupt();
    const Program steps = program(batch);
    Known known;
    known.need = measure_unmanaged(session_options(flags_), steps);
    known.minimum = {.budget = known.need.peak, .categories = known.need.categories};
    // If even the largest operator does not fit, by how much matters only for batch 1.
    if (batch > 1 && known.need.largest_operator > budget(batch)) {
      known.minimum.budget = known.need.largest_operator;
    } else if (flags_.policy != "none") {
      known.minimum = find_minimum_budget(options(batch, known.need), steps, known.need);
    }
    return known;
  }

  BatchProof train(const SessionOptions& options, const StepShape& shape, int64_t steps,
                   std::vector<TrainedStep>& records) {
    BatchProof proof;
    records.clear();
    Session session(options);
    std::optional<std::string> checksum;
    try {
      const std::unique_ptr<ShapedTraining> training = job_.start();
      for (; proof.steps < steps; ++proof.steps) {
        check_interrupt();
        StepOutcome outcome;
        const StepStats& stats = session.step([&] { outcome = training->step(shape); });
        records.push_back({outcome.loss, stats});
      }
      report_.params_checksum = training->checksum();
      report_.loader_bytes = training->data_bytes();
      proof.done = true;
    } catch (const OutOfMemory& error) {
      proof.failure = error.what();
    }
    std::vector<Nanos> times;
    for (size_t i = records.size() / 2; i < records.size(); ++i) {
      times.push_back(records[i].stats.duration);
    }
    if (!times.empty()) {
      std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
      proof.step_time = times[times.size() / 2];
    }
    proof.peak = session.peak_reserved();
    report_.peak_reserved = session.peak_reserved();
    report_.peak_categories = session.peak_live();
    report_.peak_live = session.peak_live().total();
    report_.host_peak = session.host() ? session.host()->peak() : Bytes(0);
    report_.disk_peak = session.disk() ? session.disk()->peak() : Bytes(0);
    report_.process_peak = peak_resident_memory();
    return proof;
  }

  SessionOptions feasible(const Known& known, int64_t batch) const {
    return feasible_schedule(options(batch, known.need), program(batch), known.need,
                             known.minimum);
  }

  // Runs on the simulator, whatever the device is: a dry run must not wait.
  Nanos simulated_step(SessionOptions options, int64_t batch, int64_t steps) const {
    Session session(simulated(std::move(options)));
    const std::unique_ptr<ShapedTraining> training = job_.start();
    std::vector<Nanos> times;
    for (int64_t i = 0; i < steps; ++i) {
      times.push_back(session.step([&] { training->step(shape(batch)); }).duration);
    }
    const auto middle = times.end() - std::max<int64_t>(1, steps / 8);
    std::nth_element(times.end() - std::max<int64_t>(1, steps / 4), middle, times.end());
    return *middle;
  }
  double simulated_speed(int64_t batch, int64_t without) const {
    check_interrupt();
    SessionOptions unmanaged = session_options(flags_);
    unmanaged.policy = "none";
    unmanaged.budget = budget(without);
    const Known known = look_at(batch);
    const double before = to_seconds(simulated_step(unmanaged, without, kBaselineSteps)) /
                          static_cast<double>(without);
    try {
      return before / (to_seconds(simulated_step(feasible(known, batch), batch, kSpeedSteps)) /
                       static_cast<double>(batch));
    } catch (const OutOfMemory&) {
      return 0;
    }
  }

  BatchProof prove(int64_t batch) {
    const Known known = look_at(batch);
    const SessionOptions options = feasible(known, batch);
    report_.schedule = schedule_of(options);
    report_.budget = options.budget;
    report_.host_limit = options.host_limit;
    report_.process_promised = derive_limits(facts(batch, known.need.peak)).promised;
    return train(options, shape(batch), stress_.prove, report_.steps);
  }

  // Throws InfeasibleBudget or InfeasibleMemory if not even batch 1 fits.
  void check_one(Bytes least) const {
    MemoryFacts one = facts(1, least);
    one.budget = budget_;
    if (memory_ && arena_is_in_ram(flags_) && least <= budget_) one.budget.reset();
    check_limits(one, derive_limits(one), least);
  }

  int search() {
    BatchOracle oracle;
    oracle.budget = [&](int64_t batch) { return budget(batch); };
    oracle.need = [&](int64_t batch) {
      const Known known = look_at(batch);
      return BatchNeed{known.need.peak, known.minimum.budget};
    };
    oracle.unmanaged_peak = [&](int64_t batch) {
      check_interrupt();
      return measure_unmanaged(session_options(flags_), program(batch)).peak;
    };
    oracle.speed = [&](int64_t batch, int64_t without) {
      return simulated_speed(batch, without);
    };
    oracle.prove = [&](int64_t batch) { return prove(batch); };
    oracle.on_trial = [&](const BatchTrial& trial) {
      const char* const steps = flags_.on_simulator() ? "simulated" : "real";
      print_trial(trial, steps);
      trials_.push_back(to_json(trial, steps));
    };
    const BatchAnswer answer = find_largest_batch({.largest = stress_.largest,
                                                   .least_speed = stress_.least_speed,
                                                   .managed = flags_.policy != "none"},
                                                  oracle);
    extra_["unmanaged_batch"] = answer.without;
    if (answer.batch == 0) {
      report_.minimum = MinimumBudget{.budget = answer.least};
      check_one(answer.least);
      print_error("{}: no batch could be trained\n", kProgram);
      return kOutOfMemory;
    }
    const Known known = look_at(answer.batch);
    report_.batch = answer.batch;
    report_.unmanaged = known.need;
    report_.minimum = known.minimum;
    compare(answer);
    return soak_if_asked(known, answer.batch);
  }

  void compare(const BatchAnswer& answer) {
    const auto rate = [](int64_t batch, const BatchProof& proof) {
      return static_cast<double>(batch) / to_seconds(proof.step_time);
    };
    const double speed = rate(answer.batch, answer.proof);
    extra_["per_second"] = speed;
    print_out("\nlargest batch {}: ", answer.batch);
    if (answer.without == 0) {
      print_out("without management not even 1 fits; {:.1f} {} a second\n", speed,
                job_.things());
      return;
    }
    const RunReport proven = report_;
    SessionOptions options = session_options(flags_);
    options.policy = "none";
    options.budget = budget(answer.without);
    std::vector<TrainedStep> records;
    const BatchProof baseline =
        train(options, shape(answer.without), std::min(kBaselineSteps, stress_.prove), records);
    report_ = proven;
    const double factor =
        static_cast<double>(answer.batch) / static_cast<double>(answer.without);
    print_out("{:.1f}x the {} that fit without management\n", factor, answer.without);
    const double before = rate(answer.without, baseline);
    print_out("{:.1f} {} a second, {:.0f} % of the {:.1f} without management\n", speed,
              job_.things(), 100 * speed / before, before);
    extra_["unmanaged_per_second"] = before;
    extra_["times_unmanaged_batch"] = factor;
  }

  int soak_if_asked(const Known& known, int64_t batch) {
    if (!stress_.minutes && !stress_.soak_steps) return kDone;
    Session session(feasible(known, batch));
    const std::unique_ptr<ShapedTraining> training = job_.start();
    const SoakReport report = soak(session, *training,
                                   {.batch = batch,
                                    .sizes = job_.sizes(),
                                    .minutes = stress_.minutes,
                                    .steps = stress_.soak_steps,
                                    .seed = flags_.seed},
                                   [&] { return interrupt_.requested(); });
    print_soak(report);
    extra_["soak"] = to_json(report);
    if (report.interrupted) return kInterruptedExitCode;
    return report.out_of_memory == 0 && report.flat() ? kDone : kFailed;
  }

 public:
  void write() const {
    if (flags_.json.empty()) return;
    Json json = Json::parse(tidemark::to_json(report_));
    json["margin"] = stress_.margin;
    json["shape"] = {{"size", job_.shape().size}, {"of", job_.things()}};
    json["trials"] = trials_;
    json.update(extra_);
    write_output(flags_.json, json.dump(1) + "\n");
  }

 private:
  const RunFlags& flags_;
  const StressFlags& stress_;
  const ShapedJob& job_;
  const InterruptScope interrupt_;
  Bytes budget_{0};              // the arena's, for every batch
  std::optional<Bytes> memory_;  // the process's limit
  RunReport report_;
  Json trials_ = Json::array();
  Json extra_ = Json::object();
};

void add_stress_flags(CLI::App& app, StressFlags& stress) {
  for (const char* name :
       {"--batch",      "--steps",   "--epochs",     "--dry-run",    "--trace",
        "--load",       "--save",    "--save-vocab", "--checkpoint", "--checkpoint-every",
        "--resume",     "--test",    "--evaluate",   "--accumulate", "--lr-steps",
        "--save-costs", "--profile", "--plan",       "--schedule",   "--save-schedule"}) {
    if (CLI::Option* option = app.get_option_no_throw(name)) app.remove_option(option);
  }
  app.option_defaults()->group("Stress");
  app.add_option("--margin", stress.margin, "Share of the budget and of --memory to leave free")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 0.99));
  app.add_option("--prove", stress.prove, "Training steps on --device with the batch found")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--least-speed", stress.least_speed,
                 "Minimum speed, as a share of the speed of the largest batch without "
                 "management, both simulated")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--largest", stress.largest, "Largest batch to try")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option(
         "--minutes", stress.minutes,
         "Then train for this many minutes with random batches and sizes up to the largest")
      ->check(finite_number())
      ->check(CLI::PositiveNumber);
  app.add_option("--soak-steps", stress.soak_steps, "As --minutes, but for this many steps")
      ->check(CLI::Range(1, 1 << 30));
}

template <class Flags>
int stress_with(Flags flags, int argc, char** argv) {
  CLI::App app(kDescription, kProgram);
  set_up_help(app, kFooter);
  add_flags(app, flags);
  StressFlags stress;
  add_stress_flags(app, stress);
  int exit_code = 0;
  if (!parse_or_explain(app, argc, argv, exit_code)) return exit_code;
  return explain_errors(kProgram, [&] {
    flags.batch = 1;
    if constexpr (std::is_same_v<Flags, BertFlags>) complete(flags);
    const std::unique_ptr<ShapedJob> job = make_shaped_job(flags);
    Stress program(flags, stress, *job);
    const int code = explain_errors(kProgram, [&] { return program.run(); });
    if (code != kBadInput) program.write();
    return code;
  });
}

int stress(int argc, char** argv) {
  if (trains_text(argc, argv)) {
    return stress_with(BertFlags(), argc, argv);
  }
  ResNetFlags flags;
  flags.model = "resnet50";
  flags.data = "synthetic";
  return stress_with(flags, argc, argv);
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  return tidemark::run_program(tidemark::kProgram,
                               [&] { return tidemark::stress(argc, argv); });
}
