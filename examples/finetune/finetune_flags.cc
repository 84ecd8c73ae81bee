#include "examples/finetune/finetune_flags.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "models/checkpoint/peft.h"
#include "models/checkpoint/weight_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/listed.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDescription =
    R"(Fine-tunes a language model of the Llama family in the memory at hand: all of its
weights, or LoRA. The results do not depend on the memory.

Without --memory or --budget, training takes what the machine has free, less a margin, and
releases and recomputes, or uses the disk, where that is not enough.)";

constexpr const char* kExamples = R"(
Examples:
  What would it need, and which way is best on this machine?
    finetune --model SmolLM2-135M-Instruct/ --dry-run
  An adapter from chats, one JSON object {"messages": [...]} a line:
    finetune --model SmolLM2-135M-Instruct/ --data chats.jsonl --lora-rank 8 --output adapter/
  Use it:
    finetune --model SmolLM2-135M-Instruct/ --adapter adapter/ --generate "Why is the sea salt?"
  All weights, in a process of 1 GiB:
    finetune --model model.gguf --data chats.jsonl --memory 1GiB --output tuned/
  Would an 8B model's adapter train on a GPU of 24 GB?
    finetune --model llama-3.1-8b --lora-rank 16 --stored bf16 --dtype bf16 --seq-length 4096
      --batch 1 --device sim:rtx4090-24gb --dry-run
)";

constexpr double kWarmupShare = 0.03;

void add_model_flags(CLI::App& app, FinetuneFlags& flags) {
  app.option_defaults()->group("What to train");
  app.add_option(
         "--model", flags.model,
         "A folder from Hugging Face (config.json, *.safetensors, tokenizer.json), or a "
         ".gguf file; with --dry-run or a simulated device also the name of a network: " +
             listed(text_model_names()))
      ->required();
  app.add_option("--data", flags.data,
                 "Examples, one JSON object a line: {\"messages\": [{\"role\": \"user\", "
                 "\"content\": ...}, ...]}, {\"prompt\": ..., \"completion\": ...} or "
                 "{\"text\": ...}; or a plain text. May be gzipped [bundled chats]")
      ->type_name("FILE");
  app.add_option("--validation", flags.validation, "Examples to validate on [a part of --data]")
      ->type_name("FILE");
  app.add_option("--hold-out", flags.hold_out,
                 "Share of --data that is validated on instead of trained on; 0 for none")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 0.9));
  app.add_option("--seq-length", flags.length,
                 "Tokens per sequence; longer examples are cut off")
      ->check(CLI::Range(8, 1 << 20));
  app.add_flag(
      "!--no-packing", flags.packing,
      "One example per sequence, padded, instead of several that do not see each other");
  add_dtype_flag(app, flags);
  add_length_flags(app, flags, "Sequences per step", "Passes over the data [1]");
}

struct LoraFlags {
  int64_t rank = 0;
  std::optional<double> alpha;
  double dropout = 0;
  std::vector<std::string> targets;
};

void add_lora_flags(CLI::App& app, FinetuneFlags& flags, LoraFlags& lora) {
  app.option_defaults()->group("LoRA");
  CLI::Option* rank =
      app.add_option("--lora-rank", lora.rank,
                     "Train changes of this rank and leave the weights as they are; 0: train "
                     "all weights")
          ->check(CLI::Range(0, 1 << 16));
  app.add_option("--lora-alpha", lora.alpha, "Changes count alpha / rank [twice the rank]")
      ->check(finite_number())
      ->check(CLI::PositiveNumber)
      ->needs(rank);
  app.add_option("--lora-dropout", lora.dropout, "Fraction of a change's inputs dropped")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 0.99))
      ->needs(rank);
  app.add_option(
         "--lora-targets", lora.targets,
         "Layers to change, such as q_proj,v_proj [all-linear: all dense layers but the head]")
      ->delimiter(',')
      ->needs(rank);
  app.add_option("--adapter", flags.adapter,
                 "Start from this adapter: a folder in PEFT's format, as --output writes it")
      ->type_name("FOLDER")
      ->excludes(rank);
  add_type_flag(
      app, "--stored", flags.stored,
      "Type in which weights are kept: with LoRA those that are not trained, else all "
      "matrices and their gradients [float32]");
}

void add_storage_flags(CLI::App& app, FinetuneFlags& flags) {
  app.option_defaults()->group("Optimizer");
  app.add_flag("--decay-all", flags.decays_all,
               "Weight decay also of norms' weights and biases, as with PyTorch's optimizers");
  app.add_option_function<std::string>(
         "--rounding",
         [&flags](const std::string& text) { flags.adam.masters = text == "master"; },
         "How small changes are kept that bf16 cannot hold, with --stored bf16 and without "
         "LoRA: in a float32 copy of the weights (master), or by rounding up or down at "
         "random, right in the mean, without a copy (stochastic) [master]")
      ->check(CLI::IsMember({"master", "stochastic"}));
  app.add_flag("--adam-8bit", flags.adam.eight_bit,
               "Keep Adam's means and variances in 8 bits instead of 32, but for the words' "
               "table. The result differs a little from that of 32 bits");
}

void add_result_flags(CLI::App& app, FinetuneFlags& flags) {
  app.option_defaults()->group("Results");
  app.add_option("--output", flags.output,
                 "Write the result to FOLDER: an adapter in PEFT's format, or the network, "
                 "which transformers loads")
      ->type_name("FOLDER");
  app.add_flag(
      "--merge", flags.merge,
      "With LoRA: --output gets the whole network, with the changes added. With --adapter "
      "and none of --data, --steps and --epochs, nothing is trained");
  app.add_option("--validate-every", flags.validate_every,
                 "Steps between validations [an epoch]")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--patience", flags.patience,
                 "Stop after this many validations in a row without a lower loss [never]")
      ->check(CLI::Range(1, 1 << 30));
  add_checkpoint_flags(app, flags);
  app.option_defaults()->group("Generation");
  app.add_option("--generate", flags.generate.prompts,
                 "Answer this prompt, after training if --data, --steps or --epochs are given; "
                 "may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--max-tokens", flags.generate.longest, "The longest answer")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--temperature", flags.generate.temperature,
                 "0: always the likeliest token; 1: by the model's probabilities")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--top-p", flags.generate.top_p,
                 "Choose among the likeliest tokens that have this probability together")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0));
}

// The sizes of the network, from the model's files alone.
TextModelInfo network_of(const FinetuneFlags& flags) {
  const fs::path path = flags.model;
  if (fs::is_directory(path)) {
    const fs::path config = path / "config.json";
    if (!fs::exists(config)) {
      throw UsageError("--model: there is no config.json in the folder " + flags.model);
    }
    return read_hugging_face_config(config.string());
  }
  if (fs::exists(path)) {
    const auto weights = open_weights(flags.model);
    const auto config = weights->metadata().find("config");
    if (config == weights->metadata().end()) {
      throw UsageError(
          "--model: " + flags.model +
          " does not say what network it is; give the folder with its config.json");
    }
    return parse_hugging_face_config(config->second, flags.model);
  }
  if (!is_text_model(flags.model)) {
    throw UsageError("--model: there is no file, folder or network " + flags.model +
                     "; the networks are " + listed(text_model_names()));
  }
  if (!flags.dry_run && !flags.on_simulator()) {
    throw UsageError("--model: " + flags.model +
                     " names a network without weights, which is for --dry-run and simulated "
                     "devices; give a folder or a .gguf file");
  }
  return text_model(flags.model);
}

void complete(FinetuneFlags& flags, const LoraFlags& lora, bool length_given) {
  check(flags);
  flags.network = network_of(flags);
  const std::vector<std::string> tasks = names_of(flags.network.tasks);
  if (flags.network.family == "BERT" || flags.network.family == "GPT-2" ||
      std::find(tasks.begin(), tasks.end(), "clm") == tasks.end()) {
    throw UsageError("--model: finetune is for networks of Llama's form; train_bert trains a " +
                     flags.network.family);
  }
  if (!length_given) flags.length = std::min(flags.length, flags.network.longest);
  if (flags.length > flags.network.longest) {
    throw UsageError(
        fmt::format("--seq-length: the network takes sequences of at most {} tokens",
                    flags.network.longest));
  }
  if (lora.rank > 0) {
    flags.lora = {.change = {.rank = lora.rank,
                             .alpha = lora.alpha.value_or(2.0 * static_cast<double>(lora.rank)),
                             .dropout = lora.dropout},
                  .targets = lora.targets == std::vector<std::string>{"all-linear"}
                                 ? std::vector<std::string>()
                                 : lora.targets};
  } else if (!flags.adapter.empty()) {
    flags.lora = read_adapter_config(flags.adapter);
  }
  const bool trains_bfloat16 = !flags.lora && flags.stored == DType::kBFloat16;
  if (!flags.adam.masters && !trains_bfloat16) {
    throw UsageError("--rounding stochastic needs --stored bf16 and no LoRA");
  }
  if (flags.optimizer == "sgd" && flags.trains) {
    if (!flags.adam.masters) throw UsageError("--rounding stochastic needs adam or adamw");
    if (flags.adam.eight_bit) throw UsageError("--adam-8bit needs adam or adamw");
  }
  flags.adam.seed = flags.seed;
  flags.adam.in_float32 = {flags.network.words};
  if (flags.merge && (!flags.lora || flags.output.empty())) {
    throw UsageError("--merge needs --output, and --lora-rank or --adapter");
  }
  if (!flags.output.empty() && flags.on_simulator()) {
    throw UsageError("--output: a simulated device has no values");
  }
  if (flags.patience > 0 && flags.validation.empty() && flags.hold_out == 0) {
    throw UsageError("--patience needs --validation or --hold-out");
  }
  if (flags.steps == 0 && flags.epochs == 0) flags.epochs = 1;
  if (!flags.memory && !flags.budget && flags.device == "cpu") flags.memory = MemoryAllowance{};
}

}  // namespace

int64_t FinetuneFlags::warmup_steps(int64_t run) const {
  return warmup.value_or(static_cast<int64_t>(kWarmupShare * static_cast<double>(run)));
}

int64_t FinetuneFlags::longest() const {
  const int64_t answers = generate.prompts.empty() ? 0 : generate.longest;
  return std::min(network.longest, length + answers);
}

std::optional<FinetuneFlags> parse_finetune_flags(int argc, char** argv, int& exit_code) {
  CLI::App app(kDescription, "finetune");
  set_up_help(app, std::string(kExamples) + kTrainingExitCodes);
  FinetuneFlags flags;
  LoraFlags lora;
  add_model_flags(app, flags);
  add_lora_flags(app, flags, lora);
  add_result_flags(app, flags);
  add_memory_flags(app, flags);
  add_optimizer_flags(
      app, flags,
      {.rate = "Largest learning rate [0.0002 with LoRA, else 0.00002; sgd ten times that]",
       .schedules = {"constant", "linear", "cosine"},
       .schedule = "constant, or falling to 0 over the run",
       .seed = "Seed of the changes' first values, dropout, the order of the "
               "data and sampling",
       .decay = "Weight decay of matrices; norms' weights and biases have none, as with "
                "transformers' Trainer"});
  app.add_option("--warmup", flags.warmup,
                 "Steps over which the learning rate rises; it is 0 in the first [3 % of the "
                 "run, rounded down]")
      ->check(CLI::Range(0, 1 << 30))
      ->group("Optimizer");
  add_storage_flags(app, flags);
  add_step_flags(app, flags);
  add_machine_flags(app, flags);
  if (!parse_or_explain(app, argc, argv, exit_code)) return std::nullopt;
  const auto given = [&](const char* flag) { return app.count(flag) > 0; };
  const bool without_training = given("--generate") || (given("--adapter") && flags.merge);
  flags.trains = !without_training || given("--data") || given("--steps") || given("--epochs");
  try {
    complete(flags, lora, given("--seq-length"));
  } catch (const Error& error) {
    print_error("finetune: {}\n", error.what());
    exit_code = kUsageExitCode;
    return std::nullopt;
  }
  return flags;
}

}  // namespace tidemark
