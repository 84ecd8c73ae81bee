#include "examples/common/bert_job.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string>
#include <utility>

#include "examples/common/checkpointing.h"
#include "examples/common/text_data.h"
#include "examples/common/text_training.h"
#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/weight_file.h"
#include "models/checkpoint/weights.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Settings that a continued run must share with the run it continues, beside those that all
// programs have.
WeightMetadata settings_of(const BertFlags& flags, const TextData& data) {
  WeightMetadata settings{
      {"program", "train_bert"},
      {"task", flags.task},
      {"data", data.fingerprint()},
      {"vocab-size", std::to_string(data.vocabulary_size)},
      {"seq-length", std::to_string(flags.length)},
      {"dropout", fmt::format("{}", flags.dropout)},
      {"attention", flags.attention == AttentionImplementation::kMaterialised
                        ? "materialised"
                        : "memory-efficient"},
      {"lr", fmt::format("{}", flags.learning_rate.value_or(base_rate(flags)))},
      {"warmup", std::to_string(flags.warmup)},
  };
  if (flags.config) settings[kConfigSetting] = flags.config->config;
  return settings;
}

// The metadata that complete() reads back.
WeightMetadata about_weights(const BertFlags& flags, const TextData& data) {
  return {{"format", "pt"},
          {kConfigMetadata, flags.network().config_with(data.vocabulary_size)},
          {kLowerCaseMetadata, flags.keeps_case() ? "false" : "true"}};
}

class BertTraining final : public Training {
 public:
  BertTraining(const BertFlags& flags, TextData& data, Checkpointing& files)
      : flags_(flags), data_(data), files_(files), training_(flags, data) {
    if (!flags.load.empty()) {
      const auto file = open_weights(flags.load);
      const LoadOptions options{.names = hugging_face_names(*file),
                                .missing_allowed = true,
                                .unexpected_allowed = true};
      print_loaded(load_into(training_.model(), *file, options), flags.load);
    }
    first_step_ = files.begin(training_.model(), training_.optimizer());
  }

  int64_t first_step() const override { return first_step_; }
  void prepare(int64_t step) override {
    batch_ = data_.train(step);
    training_.set_learning_rate(step, files_.schedule_steps());
  }
  StepOutcome step() override { return training_.train(std::exchange(batch_, {})); }
  std::optional<double> after_step(int64_t done) override {
    files_.after_step(done, training_.model(), training_.optimizer());
    return {};
  }
  void stop(int64_t done) override {
    files_.end(done, training_.model(), training_.optimizer());
    if (!flags_.save.empty()) {
      save_weights(flags_.save, training_.model(), about_weights(flags_, data_));
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
  const BertFlags& flags_;
  TextData& data_;
  Checkpointing& files_;
  TextTraining training_;
  TextBatch batch_;
  int64_t first_step_ = 0;
};

class BertJob final : public Job {
 public:
  BertJob(const BertFlags& flags, bool with_data)
      : flags_(flags),
        files_(flags, with_data),
        data_(with_data ? open_text(flags) : describe_text(flags)) {
    // Without known data, a few steps stand for all.
    const int64_t epoch = data_->batches_per_epoch();
    steps_ = flags.steps > 0 ? flags.steps : epoch > 0 ? flags.epochs * epoch : 2;
    if (flags.evaluate && data_->test_batches() == 0) {
      throw UsageError(
          flags.task == "squad"
              ? "--evaluate needs --test: a SQuAD file to evaluate on"
              : "--evaluate: the text is too short to hold out a part for testing");
    }
    check_weights(flags, *data_);
    files_.settle(settings_of(flags, *data_), steps_, epoch);
  }

  int64_t batch() const override { return flags_.batch; }
  int64_t steps() const override { return flags_.evaluate ? 0 : steps_; }
  std::string announcement() const override {
    return fmt::format("{}, {} on {}, sequences of {}, {} words", flags_.model, flags_.task,
                       flags_.data.empty() ? "the bundled text" : flags_.data, flags_.length,
                       data_->vocabulary_size);
  }
  Bytes loading_bytes() const override { return data_->bytes(); }
  Program dry_run() const override { return training_program(flags_, *data_, steps_); }
  std::shared_ptr<const AlgorithmTable> algorithms() const override {
    return files_.algorithms();
  }
  std::unique_ptr<Training> start() const override {
    return std::make_unique<BertTraining>(flags_, *data_, files_);
  }

 private:
  BertFlags flags_;
  mutable Checkpointing files_;
  std::unique_ptr<TextData> data_;
  int64_t steps_;
};

}  // namespace

std::unique_ptr<Job> open_bert_job(const BertFlags& flags, bool with_data) {
  return std::make_unique<BertJob>(flags, with_data);
}

}  // namespace tidemark
