#include "examples/common/bert_flags.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr const char* kDescription =
    R"(Trains BERT, XLM-R or GPT-2 under a memory budget, with results that do not depend on it.

Before training, a dry run on the simulator finds what the run needs without a budget, and the
least it could work with; a budget below that is refused.)";

constexpr const char* kFooter = R"(
Examples:
  A small BERT on the bundled text, in half the memory that it needs:
    train_bert --budget 50%
  What would BERT-base need at sequences of 512 on an A100, and how little could it do with?
    train_bert --dry-run --model bert-base --seq-length 512 --batch 32 --device sim:a100-80gb
  Fine-tune a checkpoint from Hugging Face for questions about a text:
    train_bert --model bert-base --task squad --data train-v1.1.json --test dev-v1.1.json
      --weights model.safetensors --vocab vocab.txt --save tuned.safetensors --budget 4GiB
  A run that can be killed and goes on with the same bits:
    train_bert --steps 10000 --checkpoint run.safetensors
    train_bert --steps 10000 --checkpoint run.safetensors --resume

Exit codes: 0 done; 1 failed, or standard output could not be written; 2 usage or bad input;
3 the budget is infeasible, or memory ran out; 130 interrupted (Ctrl-C, SIGTERM or SIGHUP), after
finishing the step.)";

constexpr int64_t kLanguageLength = 128, kSquadLength = 384;
constexpr int64_t kLanguageBatch = 32, kSquadBatch = 8;

void add_task_flags(CLI::App& app, BertFlags& flags) {
  const char* group = "What to train";
  app.add_option("--model", flags.model, "Network to train")
      ->check(CLI::IsMember(text_model_names()))
      ->group(group);
  app.add_option(
         "--task", flags.task,
         "mlm: predict masked words; clm: predict the next word; squad: answer questions "
         "about a text [mlm, GPT-2 clm]")
      ->check(CLI::IsMember({"mlm", "clm", "squad"}))
      ->group(group);
  app.add_option("--data", flags.data,
                 "A text file, or a SQuAD v1.1 JSON file; may be gzipped [the bundled "
                 "text]")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--test", flags.test, "SQuAD file to evaluate on [none]")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--vocab", flags.vocabulary,
                 "WordPiece vocabulary, one piece per line [learnt from the text]")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--vocab-size", flags.vocabulary_size,
         "Size of the network's vocabulary [as --weights or --vocab, else bert-tiny 8192, "
         "others as published]")
      ->check(CLI::Range(16, 1 << 24))
      ->group(group);
  app.add_flag("--cased", flags.cased, "Keep capitals and accents")->group(group);
  app.add_option("--seq-length", flags.length,
                 "Tokens in a sequence; with squad, at most [128, squad 384]")
      ->check(CLI::Range(8, 1 << 16))
      ->group(group);
  add_dtype_flag(app, flags, group);
  add_length_flags(app, flags, group, "Sequences per step [32, squad 8]",
                   "Passes over the data [squad 1, others 100 steps]");
  app.add_option("--dropout", flags.dropout, "Fraction of values dropped in training")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 0.99))
      ->group(group);
  const std::map<std::string, AttentionImplementation> implementations{
      {"materialised", AttentionImplementation::kMaterialised},
      {"memory-efficient", AttentionImplementation::kMemoryEfficient}};
  app.add_option("--attention", flags.attention,
                 "materialised keeps the matrix of scores for backward, memory-efficient "
                 "computes it again [memory-efficient]")
      ->transform(CLI::CheckedTransformer(implementations, CLI::ignore_case)
                      .description("materialised, memory-efficient"))
      ->default_str("")
      ->group(group);
}

void add_file_flags(CLI::App& app, BertFlags& flags) {
  const char* group = "Weights and checkpoints";
  const auto add = [&](const char* name, std::string& path, const char* about) {
    return app.add_option(name, path, about)->type_name("FILE")->group(group);
  };
  add("--weights", flags.weights,
      "Start from the weights in FILE: safetensors with Hugging Face's names; its head may be "
      "missing");
  add("--save", flags.save, "Write the final weights to FILE, with Hugging Face's names");
  add("--save-vocab", flags.save_vocabulary, "Write the vocabulary to FILE");
  CLI::Option* checkpoint =
      add("--checkpoint", flags.checkpoint,
          "Save the state of the run to FILE every --checkpoint-every steps and at the end; "
          "without --resume, a run that FILE holds is not overwritten");
  app.add_option("--checkpoint-every", flags.checkpoint_every, "Steps between checkpoints")
      ->check(CLI::Range(1, 1 << 30))
      ->group(group);
  app.add_flag("--resume", flags.resume, "Continue the run in --checkpoint")
      ->needs(checkpoint)
      ->group(group);
}

}  // namespace

void add_flags(CLI::App& app, BertFlags& flags) {
  add_task_flags(app, flags);
  add_memory_flags(app, flags);
  add_optimizer_flags(
      app, flags,
      {.rate = "Largest learning rate [bert-tiny 0.001, others 0.0001, squad 0.00005; sgd ten "
               "times that]",
       .schedules = {"constant", "linear", "cosine"},
       .schedule = "constant, or falling to 0 over the run",
       .seed = "Seed of the initial weights, dropout, masks and the order of the data"});
  app.add_option("--warmup", flags.warmup, "Steps over which the learning rate rises from 0")
      ->check(CLI::Range(0, 1 << 30))
      ->group("Optimizer");
  app.add_option("--clip", flags.clip,
                 "Scale gradients down to at most this norm, all together; 0: never")
      ->check(finite_number())
      ->check(CLI::NonNegativeNumber)
      ->group("Optimizer");
  add_file_flags(app, flags);
  add_machine_flags(app, flags);
}

std::vector<std::string> text_model_names() {
  std::vector<std::string> names = bert_names();
  names.insert(names.end(), gpt2_names().begin(), gpt2_names().end());
  return names;
}

bool is_text_model(std::string_view name) {
  const std::vector<std::string> names = text_model_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

void complete(BertFlags& flags) {
  if (flags.task.empty()) flags.task = flags.is_gpt2() ? "clm" : "mlm";
  if (flags.is_gpt2() != (flags.task == "clm")) {
    throw UsageError("--task " + flags.task + " is not for " + flags.model +
                     (flags.is_gpt2() ? ", which does clm" : ", which does mlm and squad"));
  }
  const bool squad = flags.task == "squad";
  if (flags.length == 0) flags.length = squad ? kSquadLength : kLanguageLength;
  if (flags.batch == 0) flags.batch = squad ? kSquadBatch : kLanguageBatch;
  if (flags.steps == 0 && flags.epochs == 0)
    (squad ? flags.epochs : flags.steps) = squad ? 1 : 100;
  if (!squad && !flags.test.empty()) throw UsageError("--test is for --task squad");
  const int64_t longest = flags.is_gpt2() ? gpt2_options(flags.model).positions
                                          : bert_options(flags.model).longest();
  if (flags.length > longest) {
    throw UsageError(fmt::format("--seq-length: {} takes sequences of at most {} tokens",
                                 flags.model, longest));
  }
  const bool keeps_files =
      !flags.weights.empty() || !flags.save.empty() || !flags.checkpoint.empty();
  if (keeps_files && flags.on_simulator()) {
    throw UsageError("--weights, --save and --checkpoint: a simulated device has no values");
  }
  if (!flags.weights.empty() && flags.vocabulary.empty()) {
    throw UsageError("--weights needs --vocab: the words that they were made for");
  }
  if (squad && flags.data.empty() && !flags.dry_run && !flags.on_simulator()) {
    throw UsageError("--task squad needs --data FILE");
  }
}

std::optional<BertFlags> parse_bert_flags(int argc, char** argv, int& exit_code) {
  CLI::App app(kDescription, "train_bert");
  set_up_help(app, kFooter);
  BertFlags flags;
  add_flags(app, flags);
  if (!parse_or_explain(app, argc, argv, exit_code)) return std::nullopt;
  try {
    complete(flags);
  } catch (const UsageError& error) {
    print_error("train_bert: {}\n", error.what());
    exit_code = kUsageExitCode;
    return std::nullopt;
  }
  return flags;
}

}  // namespace tidemark
