#include "examples/common/checkpointing.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "examples/common/console.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr const char* kScheduleSteps = "lr-steps";

}  // namespace

Checkpointing::Checkpointing(const TrainingFlags& flags, bool with_data) : flags_(flags) {
  if (!with_data) {
    flags_.save = flags_.checkpoint = "";
    flags_.resume = false;
  }
  if (!flags_.save.empty()) const AtomicFile probe(flags_.save);
  if (flags_.checkpoint.empty()) return;
  lock_.emplace(flags_.checkpoint);
  if (!flags_.resume && !std::filesystem::exists(flags_.checkpoint)) return;
  found_ = read_training_state(flags_.checkpoint);
  if (flags_.resume || found_.step == 0) return;
  throw UsageError(
      fmt::format("--checkpoint: {} holds a run of {} steps; to continue it, add --resume; to "
                  "start over, remove the file",
                  flags_.checkpoint, found_.step));
}

void Checkpointing::settle(WeightMetadata settings, int64_t steps, int64_t steps_per_epoch) {
  settings_ = std::move(settings);
  settings_["model"] = flags_.model;
  settings_["batch"] = std::to_string(flags_.batch);
  settings_["accumulate"] = std::to_string(flags_.accumulate);
  settings_["dtype"] = std::string(to_string(flags_.dtype));
  settings_["optimizer"] = flags_.optimizer;
  settings_["momentum"] = fmt::format("{}", flags_.momentum);
  settings_["weight-decay"] =
      fmt::format("{}{}", flags_.weight_decay,
                  flags_.weight_decay > 0 && !flags_.decays_all ? " of matrices" : "");
  settings_["lr-schedule"] = flags_.schedule;
  settings_["clip"] = fmt::format("{}", flags_.clip);
  settings_["seed"] = std::to_string(flags_.seed);
  steps_per_epoch_ = steps_per_epoch;
  if (flags_.resume) {
    std::string others;
    for (const auto& [name, value] : settings_) {
      const auto theirs = found_.settings.find(name);
      const std::string had = theirs == found_.settings.end() ? "unknown" : theirs->second;
      if (had == value) continue;
      others +=
          fmt::format("{}--{} {} (here {})", others.empty() ? "" : ", ", name, had, value);
    }
    if (!others.empty()) {
      throw UsageError(
          fmt::format("--resume: the run in {} has {}", flags_.checkpoint, others));
    }
    if (flags_.allow_rounding != (found_.algorithms != nullptr)) {
      throw UsageError(fmt::format(
          "--resume: the run in {} was begun {} --allow-rounding, and has to go on so",
          flags_.checkpoint, found_.algorithms ? "with" : "without"));
    }
    if (found_.step > steps) {
      throw UsageError(fmt::format(
          "--resume: {} has already done {} steps, but this run has only {}: raise --steps",
          flags_.checkpoint, found_.step, steps));
    }
  }
  settle_schedule(steps);
  settings_[kScheduleSteps] = std::to_string(schedule_steps_);
}

std::string Checkpointing::noted(const std::string& name) const {
  const auto found = found_.settings.find(name);
  return found == found_.settings.end() ? "" : found->second;
}

void Checkpointing::settle_schedule(int64_t steps) {
  schedule_steps_ = flags_.schedule_steps > 0 ? flags_.schedule_steps : steps;
  if (!flags_.resume || flags_.schedule_steps > 0 || flags_.schedule == "constant") return;
  // The number of steps with which the run began, so that the results equal those of a run that
  // was never stopped.
  const std::string& text = found_.settings[kScheduleSteps];
  int64_t before = 0;
  std::from_chars(text.data(), text.data() + text.size(), before);
  if (before < 1) {
    throw UsageError(fmt::format("--resume: {} does not say what its --{} was",
                                 flags_.checkpoint, kScheduleSteps));
  }
  if (steps > before) {
    throw UsageError(
        fmt::format("--resume: the run in {} has --lr-schedule {} over {} steps, but this run "
                    "has {}. Add --lr-steps {} to keep that schedule, whose rate is 0 after "
                    "its end, or --lr-steps {} for a schedule over all steps",
                    flags_.checkpoint, flags_.schedule, before, steps, before, steps));
  }
  schedule_steps_ = before;
}

int64_t Checkpointing::begin(Module& model, Optimizer& optimizer) {
  if (flags_.checkpoint.empty()) return 0;
  if (!flags_.resume) {
    save(0, model, optimizer);
    return 0;
  }
  return saved_at_ = load_training_state(flags_.checkpoint, model, optimizer).step;
}

void Checkpointing::after_step(int64_t done, const Module& model, const Optimizer& optimizer) {
  if (!flags_.checkpoint.empty() && done % flags_.checkpoint_every == 0) {
    save(done, model, optimizer);
  }
}

void Checkpointing::end(int64_t done, const Module& model, const Optimizer& optimizer) {
  if (!flags_.checkpoint.empty() && saved_at_ != done) save(done, model, optimizer);
}

void Checkpointing::save(int64_t done, const Module& model, const Optimizer& optimizer) {
  TrainingState state;
  state.step = done;
  state.settings = settings_;
  state.data.order_seed = flags_.seed;
  if (steps_per_epoch_ > 0) {
    state.data.epoch = done / steps_per_epoch_;
    state.data.index = done % steps_per_epoch_;
  }
  save_training_state(flags_.checkpoint, model, optimizer, state);
  saved_at_ = done;
}

void print_loaded(const LoadReport& report, const std::string& path) {
  std::string fresh;
  for (const std::string& name : report.missing) fresh += (fresh.empty() ? "" : ", ") + name;
  const size_t unused = report.unexpected.size();
  print_out("{} tensors from {}{}{}\n", report.loaded, path,
            fresh.empty() ? "" : "; new: " + fresh,
            unused == 0 ? "" : "; " + std::to_string(unused) + " of the file's are not used");
}

}  // namespace tidemark
