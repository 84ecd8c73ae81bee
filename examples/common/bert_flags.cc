#include "examples/common/bert_flags.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weight_file.h"
#include "models/image_models.h"
#include "runtime/core/errors.h"
#include "runtime/core/listed.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDescription =
    R"(Trains a text network, such as BERT or GPT-2, under a memory budget. The
results do not depend on the budget.

Before training, a dry run on the simulator finds how much memory the run needs without a budget
and the smallest budget that works; a smaller budget is refused.)";

constexpr const char* kExamples = R"(
Examples:
  A small BERT on the bundled text, in half the memory that it needs:
    train_bert --budget 50%
  How much memory does BERT-base need with sequences of 512 on an A100, and how little is enough?
    train_bert --dry-run --model bert-base --seq-length 512 --batch 32 --device sim:a100-80gb
  Fine-tune a checkpoint from Hugging Face for questions about a text:
    train_bert --load bert-base-uncased/ --task squad --data train-v1.1.json
      --test dev-v1.1.json --save tuned.safetensors --budget 4GiB
  Evaluate it:
    train_bert --model bert-base --load tuned.safetensors --vocab bert-base-uncased/vocab.txt
      --task squad --test dev-v1.1.json --evaluate
  A run that can be killed and resumed, with the same bits:
    train_bert --steps 10000 --checkpoint run.safetensors
    train_bert --steps 10000 --checkpoint run.safetensors --resume
)";

constexpr int64_t kLanguageLength = 128, kSquadLength = 384;
constexpr int64_t kLanguageBatch = 32, kSquadBatch = 8;

// The models with a default of their own: "bert-tiny 8192, ".
template <class T>
std::string own_defaults(std::optional<T> TextModelInfo::*value) {
  std::string text;
  for (const std::string& name : text_model_names()) {
    if (const auto& own = text_model(name).*value) text += fmt::format("{} {}, ", name, *own);
  }
  return text;
}

void add_task_flags(CLI::App& app, BertFlags& flags) {
  app.option_defaults()->group("What to train");
  app.add_option("--model", flags.model, "Network to train")
      ->check(CLI::IsMember(text_model_names()));
  app.add_option(
         "--task", flags.task,
         "mlm: predict masked words; clm: predict the next word; squad: answer questions "
         "about a text [mlm or clm, whichever the model is for]")
      ->check(CLI::IsMember({"mlm", "clm", "squad"}));
  app.add_option("--data", flags.data,
                 "A text file, or a SQuAD v1.1 JSON file; may be gzipped [the bundled "
                 "text]")
      ->type_name("FILE");
  app.add_option("--test", flags.test, "SQuAD file to evaluate on [none]")->type_name("FILE");
  app.add_option("--vocab", flags.vocabulary,
                 "WordPiece vocabulary, one piece per line [learnt from the text]")
      ->type_name("FILE");
  app.add_option("--vocab-size", flags.vocabulary_size,
                 "Size of the network's vocabulary [that of --load or --vocab, else " +
                     own_defaults(&TextModelInfo::learnt_vocabulary) + "others as published]")
      ->check(CLI::Range(16, 1 << 24));
  app.add_flag_function(
      "--cased,!--uncased", [&flags](int64_t count) { flags.cased = count > 0; },
      "Keep capitals and accents, or do not [as --load says, else uncased]");
  app.add_option("--seq-length", flags.length,
                 "Tokens per sequence; for squad, the maximum [128, squad 384]")
      ->check(CLI::Range(8, 1 << 16));
  add_dtype_flag(app, flags);
  add_length_flags(app, flags, "Sequences per step [32, squad 8]",
                   "Passes over the data [squad 1, others 100 steps]");
  app.add_option("--dropout", flags.dropout,
                 "Fraction of values dropped in training; none in Llama and its kin")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 0.99));
  const std::map<std::string, AttentionImplementation> implementations{
      {"materialised", AttentionImplementation::kMaterialised},
      {"memory-efficient", AttentionImplementation::kMemoryEfficient}};
  app.add_option("--attention", flags.attention,
                 "materialised keeps the matrix of scores for backward, memory-efficient "
                 "recomputes it [memory-efficient]")
      ->transform(CLI::CheckedTransformer(implementations, CLI::ignore_case)
                      .description("materialised, memory-efficient"))
      ->default_str("");
}

// The name of the network in a config.json: --model's name if that has the same sizes.
std::string name_of(const TextModelInfo& config) {
  for (const std::string& name : text_model_names()) {
    const TextModelInfo& named = text_model(name);
    if (named.family == config.family && named.sizes == config.sizes) return name;
  }
  return config.unnamed;
}

// Empty if both are of one family and agree; else a message that says where they differ.
std::string clash(const TextModelInfo& ours, const TextModelInfo& theirs,
                  const std::string& name) {
  if (ours.family != theirs.family) {
    return fmt::format("describes a {}; {} does not", ours.family, name);
  }
  return difference(ours.sizes, theirs.sizes, name);
}

// `from`: the source of these sizes, for messages. --model must agree with them.
void take_sizes(BertFlags& flags, const TextModelInfo& config, const std::string& from) {
  if (flags.model_given) {
    const std::string other = clash(config, text_model(flags.model), "--model " + flags.model);
    if (!other.empty()) throw UsageError(from + ": " + other);
  } else {
    flags.model = name_of(config);
  }
  flags.config = config;
}

// Opens a folder written by Hugging Face's save_pretrained.
void open_folder(BertFlags& flags) {
  const fs::path folder = flags.load, config = folder / "config.json",
                 words = folder / "vocab.txt", tokenizer = folder / "tokenizer_config.json";
  if (!fs::exists(config)) {
    throw UsageError("--load: there is no config.json in the folder " + flags.load);
  }
  take_sizes(flags, read_hugging_face_config(config.string()), "--load: " + config.string());
  if (flags.vocabulary.empty() && fs::exists(words)) flags.vocabulary = words.string();
  if (!flags.cased && fs::exists(tokenizer)) {
    if (const auto lower = read_lower_case(tokenizer.string())) flags.cased = !*lower;
  }
  if (flags.resume) {
    flags.load = "";  // the weights are in the checkpoint
    return;
  }
  open_weights(flags.load);  // says what is missing
}

// Weights written by --save contain their sizes; others do not.
void open_file(BertFlags& flags) {
  const auto file = open_weights(flags.load);
  const auto config = file->metadata().find(kConfigMetadata);
  if (config == file->metadata().end()) return;
  take_sizes(flags, parse_hugging_face_config(config->second, flags.load),
             "--load: " + flags.load);
  const auto lower = file->metadata().find(kLowerCaseMetadata);
  if (!flags.cased && lower != file->metadata().end()) flags.cased = lower->second == "false";
}

// Opens the checkpoint of a run that began with --load.
void open_checkpoint(BertFlags& flags) {
  if (!fs::exists(flags.checkpoint)) return;
  const std::string from = "--resume: the run in " + flags.checkpoint;
  WeightMetadata settings = read_training_settings(flags.checkpoint);
  if (!settings.contains(kConfigSetting)) {
    if (!flags.config) return;
    throw UsageError(from + " did not start from a folder: give --model " + settings["model"] +
                     " and, if it had one, --vocab in place of --load");
  }
  const TextModelInfo config =
      parse_hugging_face_config(settings[kConfigSetting], flags.checkpoint);
  if (flags.config) {
    const std::string other = clash(config, *flags.config, "--load");
    if (!other.empty()) throw UsageError(from + ": " + other);
  }
  take_sizes(flags, config, from);
  if (flags.vocabulary.empty()) {
    throw UsageError(from +
                     " started with --load: give its vocabulary, with --load if that was a "
                     "folder, else with --vocab");
  }
  if (flags.vocabulary_size == 0) {
    const std::string& rows = settings["vocab-size"];
    std::from_chars(rows.data(), rows.data() + rows.size(), flags.vocabulary_size);
  }
}

// Says why there is no vocabulary for --load.
std::string missing_words(const BertFlags& flags) {
  const std::string& format = flags.network().words_format;
  std::string message =
      "--load needs --vocab: the vocabulary that the weights were trained with";
  if (format.empty()) return message;
  return message + ". The published vocabularies of " + flags.model + " are " + format +
         ", which is not supported; --vocab takes only WordPiece vocabularies, one piece per "
         "line";
}

bool does(const TextModelInfo& network, const std::string& task) {
  const std::vector<std::string> tasks = names_of(network.tasks);
  return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

// Throws UsageError that says what the model does, and which models do the task.
void check_task(const BertFlags& flags) {
  if (does(flags.network(), flags.task)) return;
  std::vector<std::string> others;
  for (const std::string& name : text_model_names()) {
    if (does(text_model(name), flags.task)) others.push_back(name);
  }
  throw UsageError(fmt::format(
      "--task {} is not available for {}; use {}, or --model {}", flags.task, flags.model,
      listed(names_of(flags.network().tasks), " or "), listed(others, " or ")));
}

}  // namespace

void add_flags(CLI::App& app, BertFlags& flags) {
  add_task_flags(app, flags);
  add_memory_flags(app, flags);
  add_optimizer_flags(
      app, flags,
      {.rate = "Largest learning rate [" + own_defaults(&TextModelInfo::rate) +
               "others 0.0001, squad 0.00005; sgd ten times that]",
       .schedules = {"constant", "linear", "cosine"},
       .schedule = "constant, or falling to 0 over the run",
       .seed = "Seed of the initial weights, dropout, masks and the order of the data"});
  app.add_option("--warmup", flags.warmup, "Steps over which the learning rate rises from 0")
      ->check(CLI::Range(0, 1 << 30))
      ->group("Optimizer");
  add_step_flags(app, flags);
  add_file_flags(app, flags, "--load,--weights",
                 "Start from these weights: a Hugging Face folder (config.json gives the "
                 "network's sizes; vocab.txt and tokenizer_config.json, if present, the "
                 "vocabulary and its case), or a safetensors file with Hugging Face's names "
                 "and the sizes of --model, or any sizes if --save wrote it. Heads may be "
                 "missing. With --resume, a folder gives only the vocabulary",
                 "Write the final weights to FILE, with Hugging Face's names");
  app.add_option("--save-vocab", flags.save_vocabulary, "Write the vocabulary to FILE")
      ->type_name("FILE")
      ->group("Weights and checkpoints");
  add_machine_flags(app, flags);
}

void complete(BertFlags& flags) {
  if (fs::is_directory(flags.load)) {
    open_folder(flags);
  } else if (!flags.load.empty() && !flags.resume && !flags.on_simulator()) {
    open_file(flags);
  }
  if (flags.resume) open_checkpoint(flags);
  if (flags.task.empty()) flags.task = flags.network().tasks.front().name;
  check_task(flags);
  const bool squad = flags.task == "squad";
  if (flags.batch == 0) flags.batch = squad ? kSquadBatch : kLanguageBatch;
  if (!squad && !flags.test.empty()) throw UsageError("--test needs --task squad");
  const int64_t longest = flags.network().longest;
  if (flags.length == 0) {
    flags.length = std::min(longest, squad ? kSquadLength : kLanguageLength);
  }
  if (flags.length > longest) {
    throw UsageError(fmt::format("--seq-length: {} takes sequences of at most {} tokens",
                                 flags.model, longest));
  }
  check(flags);
  if (flags.steps == 0 && flags.epochs == 0) {
    (squad ? flags.epochs : flags.steps) = squad ? 1 : 100;
  }
  if (!flags.load.empty() && flags.vocabulary.empty()) {
    throw UsageError(missing_words(flags));
  }
  if (squad && flags.data.empty() && !flags.evaluate && !flags.dry_run &&
      !flags.on_simulator()) {
    throw UsageError("--task squad needs --data FILE");
  }
}

bool trains_text(int argc, char** argv) {
  const std::string name = model_of(argc, argv);
  if (name.empty() || name.starts_with('-')) return false;
  if (is_text_model(name)) return true;
  const std::vector<std::string>& others = image_model_names();
  if (std::find(others.begin(), others.end(), name) != others.end()) return false;
  throw UsageError("--model: there is no network '" + name + "'. For images: " +
                   listed(others) + ". For text: " + listed(text_model_names()));
}

std::optional<BertFlags> parse_bert_flags(int argc, char** argv, int& exit_code) {
  CLI::App app(kDescription, "train_bert");
  set_up_help(app, std::string(kExamples) + kTrainingExitCodes);
  BertFlags flags;
  add_flags(app, flags);
  if (!parse_or_explain(app, argc, argv, exit_code)) return std::nullopt;
  flags.model_given = app.count("--model") > 0;
  const auto explain = [&](const std::exception& error) {
    print_error("train_bert: {}\n", error.what());
    exit_code = kUsageExitCode;
    return std::nullopt;
  };
  try {
    complete(flags);
  } catch (const UsageError& error) {
    return explain(error);
  } catch (const DataError& error) {
    return explain(error);
  }
  return flags;
}

}  // namespace tidemark
