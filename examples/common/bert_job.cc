#include "examples/common/bert_job.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "examples/common/text_data.h"
#include "examples/common/text_training.h"
#include "models/checkpoint/atomic_file.h"
#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weights.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Heads may be missing, the network under them may not. Says what was not found.
void load_weights(const std::string& path, Module& model) {
  SafetensorsFile file(path);
  const WeightNames names = hugging_face_names(file);
  for (const NamedTensor& parameter : model.parameters()) {
    const bool head = parameter.name.starts_with("cls.") ||
                      parameter.name.starts_with("lm_head.") ||
                      parameter.name.starts_with("qa_outputs.");
    if (!head && file.find(names(parameter.name)[0]) == nullptr) {
      throw DataError(path, 0, "there is no '" + parameter.name + "'");
    }
  }
  const LoadReport report = load_into(
      model, file, {.names = names, .missing_allowed = true, .unexpected_allowed = true});
  std::string fresh;
  for (const std::string& name : report.missing) fresh += (fresh.empty() ? "" : ", ") + name;
  fmt::print("{} tensors from {}{}\n", report.loaded, path,
             fresh.empty() ? "" : "; new: " + fresh);
}

// Before anything is computed: the weights can be written in the end, and no other run is lost.
void check_files(const BertFlags& flags) {
  if (!flags.save.empty()) const AtomicFile probe(flags.save);
  if (flags.resume || flags.checkpoint.empty()) return;
  if (!std::filesystem::exists(flags.checkpoint)) return;
  const int64_t done = read_training_state(flags.checkpoint).step;
  if (done == 0) return;
  throw UsageError(fmt::format(
      "--checkpoint: {} holds a run of {} steps; to go on with it, add --resume; to begin "
      "anew, remove the file",
      flags.checkpoint, done));
}

// Everything that a run has to share with the one it goes on from.
SafetensorsMetadata settings_of(const BertFlags& flags, const TextData& data, int64_t steps) {
  std::string schedule = flags.schedule;
  if (schedule != "constant") schedule += fmt::format(" to step {}", steps);
  return {
      {"program", "train_bert"},
      {"model", flags.model},
      {"task", flags.task},
      {"data", data.fingerprint()},
      {"words", std::to_string(data.vocabulary_size)},
      {"seq-length", std::to_string(flags.length)},
      {"batch", std::to_string(flags.batch)},
      {"dtype", std::string(to_string(flags.dtype))},
      {"dropout", fmt::format("{}", flags.dropout)},
      {"attention", flags.attention == AttentionImplementation::kMaterialised
                        ? "materialised"
                        : "memory-efficient"},
      {"optimizer", flags.optimizer},
      {"momentum", fmt::format("{}", flags.momentum)},
      {"weight-decay", fmt::format("{}", flags.weight_decay)},
      {"lr", fmt::format("{}", flags.learning_rate.value_or(base_rate(flags)))},
      {"lr-schedule", schedule},
      {"warmup", std::to_string(flags.warmup)},
      {"clip", fmt::format("{}", flags.clip)},
  };
}

class BertTraining final : public Training {
 public:
  BertTraining(const BertFlags& flags, TextData& data, int64_t steps)
      : flags_(flags), data_(data), steps_(steps), training_(flags, data) {
    if (flags.resume) {
      first_step_ = resume();
    } else if (!flags.weights.empty()) {
      load_weights(flags.weights, training_.model());
    }
    if (!flags.checkpoint.empty() && !flags.resume) {
      save_state(0);  // now, so that a path that cannot be written is known
    }
  }

  int64_t first_step() const override { return first_step_; }
  void prepare(int64_t step) override {
    batch_ = data_.train(step);
    training_.set_learning_rate(step, steps_);
  }
  StepOutcome step() override { return training_.train(std::exchange(batch_, {})); }
  void after_step(int64_t done) override {
    if (!flags_.checkpoint.empty() && done % flags_.checkpoint_every == 0) save_state(done);
  }
  void stop(int64_t done) override {
    if (!flags_.checkpoint.empty() && saved_at_ != done) save_state(done);
    if (!flags_.save.empty()) {
      save_weights(flags_.save, training_.model(), {{"format", "pt"}});
    }
  }
  std::optional<std::string> checksum() const override { return training_.checksum(); }
  CarriedParts carried() override { return training_.carried(); }

  Evaluation evaluate(Session& session) override {
    int64_t correct = 0, guesses = 0;
    double loss = 0;
    for (int64_t i = 0; i < data_.test_batches(); ++i) {
      const TextBatch batch = data_.test(i);
      TextTraining::Answers answers;
      session.step([&] { answers = training_.evaluate(batch); });
      if (!answers.outcome.loss) return {};
      if (flags_.task == "squad") data_.answer(i, answers.start, answers.end);
      loss += double{*answers.outcome.loss} * static_cast<double>(batch.asked);
      correct += answers.outcome.correct.value_or(0);
      guesses += batch.asked;
    }
    if (guesses == 0) return {};
    if (flags_.task == "squad") return data_.score();
    Evaluation evaluation{
        .accuracy = static_cast<double>(correct) / static_cast<double>(guesses), .of = "words"};
    evaluation.scores.emplace_back("loss", loss / static_cast<double>(guesses));
    return evaluation;
  }

 private:
  void save_state(int64_t done) {
    TrainingState state;
    state.step = done;
    state.settings = settings_of(flags_, data_, steps_);
    state.data.order_seed = flags_.seed;
    state.data.epoch = done / data_.batches_per_epoch();
    state.data.index = done % data_.batches_per_epoch();
    save_training_state(flags_.checkpoint, training_.model(), training_.optimizer(), state);
    saved_at_ = done;
  }

  // The step to go on with. All is checked before anything is changed.
  int64_t resume() {
    const SafetensorsMetadata ours = settings_of(flags_, data_, steps_);
    SafetensorsMetadata theirs = read_training_state(flags_.checkpoint).settings;
    for (const auto& [name, value] : ours) {
      if (theirs[name] == value) continue;
      throw UsageError(fmt::format("--resume: {} has another {}: '{}', this run's is '{}'",
                                   flags_.checkpoint, name, theirs[name], value));
    }
    const TrainingState state =
        load_training_state(flags_.checkpoint, training_.model(), training_.optimizer());
    return saved_at_ = state.step;
  }

  const BertFlags& flags_;
  TextData& data_;
  int64_t steps_;
  TextTraining training_;
  TextBatch batch_;
  int64_t first_step_ = 0;
  int64_t saved_at_ = -1;
};

class BertJob final : public Job {
 public:
  BertJob(const BertFlags& flags, bool with_data)
      : flags_(flags), data_(with_data ? open_text(flags) : describe_text(flags)) {
    // Of unknown data a few steps stand for all.
    const int64_t epoch = data_->batches_per_epoch();
    steps_ = flags.steps > 0 ? flags.steps : epoch > 0 ? flags.epochs * epoch : 2;
  }

  int64_t batch() const override { return flags_.batch; }
  int64_t steps() const override { return steps_; }
  std::string announcement() const override {
    return fmt::format("{}, {} on {}, sequences of {}, {} words", flags_.model, flags_.task,
                       flags_.data.empty() ? "the bundled text" : flags_.data, flags_.length,
                       data_->vocabulary_size);
  }
  Bytes loading_bytes() const override { return data_->bytes(); }
  Program dry_run() const override { return training_program(flags_, *data_, steps_); }
  std::unique_ptr<Training> start() const override {
    return std::make_unique<BertTraining>(flags_, *data_, steps_);
  }

 private:
  BertFlags flags_;
  std::unique_ptr<TextData> data_;
  int64_t steps_;
};

}  // namespace

std::unique_ptr<Job> open_bert_job(const BertFlags& flags, bool with_data) {
  if (with_data) check_files(flags);
  return std::make_unique<BertJob>(flags, with_data);
}

}  // namespace tidemark
