#include "examples/finetune/finetune_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/common/bundled.h"
#include "examples/common/checkpointing.h"
#include "examples/common/console.h"
#include "examples/common/interrupt.h"
#include "examples/common/progress.h"
#include "examples/finetune/answers.h"
#include "examples/finetune/tuning.h"
#include "models/checkpoint/weight_file.h"
#include "models/checksum.h"
#include "models/text/tokenizer/model_tokenizer.h"
#include "models/text/tokenizer/tokenizer_files.h"
#include "models/text/tuning/tuning_batches.h"
#include "models/text/tuning/tuning_data.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundledChats = "chat/harbour.jsonl";
// Notes in checkpoints: the best validation loss, and the validations since.
constexpr const char *kBest = "best-validation-loss", *kWorse = "validations-since";
constexpr size_t kMostLengths = 16;  // in a dry run

// Encodes the whole file, which takes a while: shows how far it is.
TuningData open_data(const std::string& path, const FinetuneFlags& flags,
                     const ModelTokenizer& model) {
  ReadingLine line(stderr, fs::path(path).filename().string());
  return {path, model, {.longest = flags.length, .progress = [&line](double share) {
                          line.show(share);
                        }}};
}

// The examples to train and to validate on, as batches.
class TuningSets {
 public:
  TuningSets(const FinetuneFlags& flags, const ModelTokenizer& model)
      : data_(open_data(flags.data.empty() ? bundled_path(kBundledChats) : flags.data, flags,
                        model)) {
    ExampleRange train{0, data_.size()}, held{0, 0};
    if (!flags.validation.empty()) {
      validation_.emplace(open_data(flags.validation, flags, model));
      held = {0, validation_->size()};
    } else if (flags.hold_out > 0 && data_.size() > 1) {
      std::tie(train, held) = data_.split(flags.hold_out);
    }
    TuningBatchOptions options{.rows = flags.batch,
                               .length = flags.length,
                               .packing = flags.packing,
                               .seed = flags.seed};
    train_.emplace(data_, train, options);
    if (held.size() == 0) return;
    options.shuffle = false;
    test_.emplace(validation_ ? *validation_ : data_, held, options);
  }

  TuningBatch train(int64_t step) { return train_->at(step); }
  int64_t steps_per_epoch() const { return train_->steps_per_epoch(); }
  int64_t test_batches() const { return test_ ? test_->steps_per_epoch() : 0; }
  TuningBatch test(int64_t step) { return test_->at(step); }

  const TuningData& data() const { return data_; }
  double filled() { return train_->filled(); }
  Bytes bytes() const {
    Bytes bytes = data_.bytes() + train_->bytes();
    if (test_) bytes += test_->bytes();
    if (validation_) bytes += validation_->bytes();
    return bytes;
  }
  std::string fingerprint() const {
    return fmt::format("{:016x} {:016x}", train_->fingerprint(),
                       test_ ? test_->fingerprint() : 0);
  }
  // The lengths that batches can have, ascending.
  std::vector<int64_t> lengths() const {
    const TuningBatchOptions& options = train_->options();
    if (options.packing) return {options.length};
    const int64_t longest = std::max(train_->longest(), test_ ? test_->longest() : 0);
    std::vector<int64_t> lengths;
    for (int64_t at = options.multiple; at < longest; at += options.multiple) {
      lengths.push_back(at);
    }
    lengths.push_back(longest);
    return lengths;
  }

 private:
  TuningData data_;
  std::optional<TuningData> validation_;
  std::optional<TuningBatches> train_, test_;
};

// A batch's sizes without its values.
TuningBatch sized(const FinetuneFlags& flags, int64_t length) {
  const int64_t all = flags.batch * length;
  return {.rows = flags.batch, .length = length, .used = all, .counted = all};
}

// `lengths`: of batches, ascending. The longest comes first, because predictions are of the
// first step, and twice: in the second step, all state exists from the beginning.
Program program_for(const FinetuneFlags& flags, std::vector<int64_t> lengths) {
  const size_t every = (lengths.size() + kMostLengths - 1) / kMostLengths;
  std::vector<int64_t> chosen{lengths.back(), lengths.back()};
  for (size_t i = lengths.size() - 1; i >= every; i -= every) {
    chosen.push_back(lengths[i - every]);
  }
  const bool loads = !flags.on_simulator() || flags.dry_run;
  const bool validates = flags.hold_out > 0 || !flags.validation.empty();
  return [&flags, chosen, loads, validates] {
    const auto tuning = std::make_shared<Tuning>(flags);
    std::vector<std::function<void()>> steps;
    for (const int64_t length : chosen) {
      if (!flags.trains) break;
      steps.emplace_back([=, &flags] { tuning->train(sized(flags, length)); });
    }
    if (flags.trains && validates) {
      steps.emplace_back([=, &flags] { tuning->evaluate(sized(flags, chosen.front())); });
    }
    if (!flags.generate.prompts.empty()) {
      steps.emplace_back([=, &flags] { simulate_answer(flags, tuning->network()); });
    }
    if (loads) steps.emplace_back([=] { tuning->simulate_load(); });
    if (flags.merge) steps.emplace_back([=] { tuning->simulate_merge(); });
    return steps;
  };
}

// Of the names and shapes of all tensors in the model's files, and some of each one's values:
// the whole of a large model would take long.
std::string fingerprint_of_weights(const std::string& model) {
  constexpr int64_t kSome = 64;
  const auto file = open_weights(model);
  Checksum checksum;
  for (const WeightEntry& entry : file->entries()) {
    const std::string about = entry.name + entry.type + entry.shape.to_string();
    checksum.add(std::as_bytes(std::span(about)));
    if (!entry.dtype) continue;
    std::vector<std::byte> values(static_cast<size_t>(
        (size_of(*entry.dtype) * std::min(kSome, entry.shape.elements())).count()));
    file->read(entry, Bytes(0), values);
    checksum.add(values);
  }
  return checksum.hex();
}

// Settings that a continued run must share with the run it continues.
WeightMetadata settings_of(const FinetuneFlags& flags, const TuningSets* sets) {
  // Those that a checkpoint of LoRA leaves out.
  const bool compares_weights = flags.lora && sets && !flags.checkpoint.empty();
  std::string lora = "none";
  if (flags.lora) {
    lora = fmt::format("rank {}, alpha {}, dropout {}, targets", flags.lora->change.rank,
                       flags.lora->change.alpha, flags.lora->change.dropout);
    for (const std::string& target : flags.lora->targets) lora += " " + target;
    if (flags.lora->pattern) lora += " " + flags.lora->pattern->text;
  }
  return {{"program", "finetune"},
          {"data", sets ? sets->fingerprint() : ""},
          {"network", flags.network.config},
          {"seq-length", std::to_string(flags.length)},
          {"packing", flags.packing ? "yes" : "no"},
          {"lora", lora},
          {"stored", std::string(to_string(flags.stored))},
          {"rounding", flags.adam.masters ? "master" : "stochastic"},
          {"weights", compares_weights ? fingerprint_of_weights(flags.model) : ""},
          {"adam-8bit", flags.adam.eight_bit ? "yes" : "no"},
          {"lr", fmt::format("{}", flags.learning_rate.value_or(base_rate(flags)))},
          {"warmup", flags.warmup ? std::to_string(*flags.warmup) : "3 %"}};
}

// On data that are not trained on.
struct Score {
  std::optional<double> loss{}, accuracy{};
};

class FinetuneTraining final : public Training {
 public:
  FinetuneTraining(const FinetuneFlags& flags, TuningSets* sets, const ModelTokenizer* model,
                   const std::vector<NamedText>& tokenizer, Checkpointing& files)
      : flags_(flags),
        sets_(sets),
        model_(model),
        tokenizer_(tokenizer),
        files_(files),
        tuning_(flags) {
    if (!flags.on_simulator()) tuning_.load();
    first_step_ = files.begin(tuning_.network(), tuning_.optimizer());
    if (const std::string best = files.noted(kBest); !best.empty()) {
      best_ = std::stod(best);
      worse_ = std::stoll(files.noted(kWorse));
    }
  }

  int64_t first_step() const override { return first_step_; }
  void prepare(int64_t step) override {
    batch_ = sets_ ? sets_->train(step) : sized(flags_, flags_.length);
    tuning_.set_learning_rate(step, files_.schedule_steps());
  }
  StepOutcome step() override {
    const StepOutcome outcome = tuning_.train(std::exchange(batch_, {}));
    if (outcome.loss && !std::isfinite(*outcome.loss)) {
      throw Error(
          "the loss is no longer a number: training has diverged, and nothing is saved; "
          "try a smaller --lr, or --clip");
    }
    return outcome;
  }
  std::optional<double> after_step(int64_t done) override {
    const int64_t every = flags_.validate_every > 0 ? flags_.validate_every
                          : sets_                   ? sets_->steps_per_epoch()
                                                    : 0;
    validated_ = {};
    if (every > 0 && done % every == 0) validated_ = validate(Session::current());
    if (const auto loss = validated_.loss) {
      worse_ = !best_ || *loss < *best_ ? 0 : worse_ + 1;
      best_ = std::min(*loss, best_.value_or(*loss));
      files_.note(kBest, fmt::format("{}", *best_));
      files_.note(kWorse, std::to_string(worse_));
    }
    files_.after_step(done, tuning_.network(), tuning_.optimizer());
    return validated_.loss;
  }
  bool finished() const override { return flags_.patience > 0 && worse_ >= flags_.patience; }
  void stop(int64_t done) override {
    std::exception_ptr error;  // that the checkpoint cannot be written must not cost the result
    try {
      files_.end(done, tuning_.network(), tuning_.optimizer());
    } catch (const Error&) {
      error = std::current_exception();
    }
    const bool untrained = done == first_step_ && interrupt_requested();
    if (!flags_.output.empty() && !untrained) {
      tuning_.save(tokenizer_);
      const bool adapter = !saves_network(flags_);
      print_out("{} written to {}{}\n", adapter ? "adapter" : "network", flags_.output,
                flags_.trains ? fmt::format(", as of step {}", done) : "");
    }
    if (error) std::rethrow_exception(error);
  }
  std::optional<std::string> checksum() const override { return tuning_.checksum(); }
  CarriedParts carried() override { return tuning_.carried(); }

  Evaluation evaluate(Session& session) override {
    Evaluation evaluation{.of = "tokens"};
    if (flags_.trains) {
      const Score score = validated_.loss ? validated_ : validate(session);
      if (score.loss) {
        evaluation.accuracy = score.accuracy;
        evaluation.scores.emplace_back("loss", *score.loss);
      }
    }
    if (model_) print_answers(flags_, tuning_.network(), *model_, session);
    return evaluation;
  }

 private:
  Score validate(Session& session) {
    double loss = 0;
    int64_t correct = 0, counted = 0;
    for (int64_t i = 0; i < (sets_ ? sets_->test_batches() : 0); ++i) {
      if (interrupt_requested()) return {};
      const TuningBatch batch = sets_->test(i);
      StepOutcome outcome;
      session.step([&] { outcome = tuning_.evaluate(batch); });
      if (!outcome.loss) return {};
      loss += double{*outcome.loss} * static_cast<double>(batch.counted);
      correct += outcome.correct.value_or(0);
      counted += batch.counted;
    }
    if (counted == 0) return {};
    return {loss / static_cast<double>(counted),
            static_cast<double>(correct) / static_cast<double>(counted)};
  }

  const FinetuneFlags& flags_;
  TuningSets* sets_;             // null without data
  const ModelTokenizer* model_;  // null without data
  const std::vector<NamedText>& tokenizer_;
  Checkpointing& files_;
  Tuning tuning_;
  TuningBatch batch_;
  int64_t first_step_ = 0;
  Score validated_;             // after the last step, if it was validated
  std::optional<double> best_;  // validation loss
  int64_t worse_ = 0;           // validations since
};

void check_vocabulary(const FinetuneFlags& flags, const ModelTokenizer& model) {
  int64_t most = model.tokenizer.vocabulary_size();
  for (const std::optional<int32_t>& id : {model.begin_of_text, model.end_of_text}) {
    most = std::max(most, int64_t{id.value_or(-1)} + 1);
  }
  most = std::max(most, int64_t{model.pad} + 1);
  if (most <= flags.network.vocabulary) return;
  throw UsageError(fmt::format("--model: the tokenizer has {} tokens, but the network only {}",
                               most, flags.network.vocabulary));
}

constexpr std::array kFilesOfAdapters{"adapter_config.json", "adapter_model.safetensors"};
constexpr std::array kFilesOfNetworks{"model.safetensors", "model.safetensors.index.json"};

// Throws if the folder of --output could not be written, if it holds a result of the other
// kind; makes nothing.
void check_output(const FinetuneFlags& flags) {
  if (flags.output.empty()) return;
  std::error_code none;
  if (fs::equivalent(flags.model, flags.output, none)) {
    throw UsageError("--output would replace --model's own files; give another folder");
  }
  fs::path folder = fs::absolute(flags.output);
  if (fs::exists(folder) && !fs::is_directory(folder)) {
    throw UsageError(fmt::format("--output: {} is not a folder", flags.output));
  }
  if (fs::is_directory(folder)) {
    const bool adapter = !saves_network(flags);
    const auto held = [&](const auto& files) {
      return std::find_if(files.begin(), files.end(),
                          [&](const char* file) { return fs::exists(folder / file); });
    };
    const auto& own = adapter ? kFilesOfAdapters : kFilesOfNetworks;
    const auto& other = adapter ? kFilesOfNetworks : kFilesOfAdapters;
    // transformers would load both together.
    if (const auto file = held(other); file != other.end()) {
      throw UsageError(fmt::format("--output: {} holds {}, of {}; give another folder",
                                   flags.output, *file, adapter ? "a network" : "an adapter"));
    }
    if (!flags.resume && held(own) != own.end()) {
      print_error("note: {} holds {}, which will be replaced\n", flags.output,
                  adapter ? "an adapter" : "a network");
    }
    const AtomicFile probe((folder / "config.json").string());
    return;
  }
  while (!fs::exists(folder.parent_path())) folder = folder.parent_path();
  if (!fs::is_directory(folder.parent_path())) {
    throw UsageError(fmt::format("--output {}: {} is not a folder", flags.output,
                                 folder.parent_path().string()));
  }
  const AtomicFile probe(folder.string());
}

// The files of the tokenizer that are saved with the network. Throws if a GGUF file's cannot
// be.
std::vector<NamedText> tokenizer_to_save(const FinetuneFlags& flags) {
  const bool saved = !flags.output.empty() && saves_network(flags);
  if (!saved || fs::is_directory(flags.model)) return {};
  return gguf_tokenizer_files(flags.model);
}

void note_if_nothing_is_kept(const FinetuneFlags& flags) {
  const bool kept = !flags.output.empty() || !flags.checkpoint.empty();
  if (!flags.trains || kept || flags.dry_run || flags.on_simulator()) return;
  print_error("note: neither --output nor --checkpoint is given, so the result is not kept\n");
}

class FinetuneJob final : public Job {
 public:
  FinetuneJob(const FinetuneFlags& flags, bool with_data)
      : flags_(flags), files_(flags_, with_data) {
    if (with_data) {
      model_.emplace(open_tokenizer(flags_.model));
      check_vocabulary(flags_, *model_);
      check_output(flags_);
      tokenizer_ = tokenizer_to_save(flags_);
      note_if_nothing_is_kept(flags_);
      check_prompts(flags_, *model_);
      if (flags_.trains) sets_.emplace(flags_, *model_);
    }
    // Without known data, a few steps stand for all.
    const int64_t epoch = sets_ ? sets_->steps_per_epoch() : 0;
    steps_ = !flags_.trains     ? 0
             : flags_.steps > 0 ? flags_.steps
             : epoch > 0        ? flags_.epochs * epoch
                                : 2;
    files_.settle(settings_of(flags_, sets()), steps_, epoch);
  }

  int64_t batch() const override { return flags_.batch; }
  int64_t steps() const override { return steps_; }
  std::string announcement() const override {
    if (!flags_.trains) return flags_.model + ", not trained,";
    std::string text = fmt::format(
        "{}, {}, sequences of {}", flags_.model,
        flags_.lora ? fmt::format("LoRA of rank {}", flags_.lora->change.rank) : "all weights",
        flags_.length);
    if (!sets_) return text;
    const TuningData& data = sets_->data();
    text += fmt::format("; {} example{} with {} tokens, {} of them to be learnt", data.size(),
                        data.size() == 1 ? "" : "s", data.tokens(), data.counted());
    if (data.truncated() > 0) text += fmt::format(", {} cut off", data.truncated());
    if (data.skipped() > 0) text += fmt::format(", {} left out", data.skipped());
    return text + fmt::format("; rows {:.0f} % full", 100 * sets_->filled());
  }
  Bytes loading_bytes() const override {
    Bytes bytes{0};
    if (sets_) bytes += sets_->bytes();
    if (model_) bytes += model_->tokenizer.bytes();
    for (const NamedText& file : tokenizer_) {
      bytes += Bytes(static_cast<int64_t>(file.text.size()));
    }
    return bytes;
  }
  Program dry_run() const override {
    return program_for(flags_, sets_ ? sets_->lengths() : std::vector{flags_.length});
  }
  std::shared_ptr<const AlgorithmTable> algorithms() const override {
    return files_.algorithms();
  }
  std::unique_ptr<Training> start() const override {
    return std::make_unique<FinetuneTraining>(flags_, sets(), model_ ? &*model_ : nullptr,
                                              tokenizer_, files_);
  }

 private:
  TuningSets* sets() const { return sets_ ? &*sets_ : nullptr; }

  FinetuneFlags flags_;
  mutable Checkpointing files_;
  std::optional<ModelTokenizer> model_;
  std::vector<NamedText> tokenizer_;
  mutable std::optional<TuningSets> sets_;
  int64_t steps_;
};

}  // namespace

std::unique_ptr<Job> open_finetune_job(const FinetuneFlags& flags, bool with_data) {
  return std::make_unique<FinetuneJob>(flags, with_data);
}

}  // namespace tidemark
