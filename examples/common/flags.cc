#include "examples/common/flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <utility>

#include "models/resnet.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int kUsage = 2;

constexpr const char* kDescription =
    R"(Trains a ResNet under a memory budget, with results that do not depend on it.

Before training, a dry run on the simulator finds what the run needs without a budget, and the
least it could work with; a budget below that is refused.)";

constexpr const char* kFooter = R"(
Examples:
  The bundled handwritten digits in half the memory that they need:
    train_resnet --budget 50%
  The same losses without a budget (compare "loss_bits" in the two files):
    train_resnet --json free.json;  train_resnet --budget 50% --json half.json
  What would ResNet-50 need at batch 256 on an A100, and how little could it do with?
    train_resnet --dry-run --model resnet50 --data synthetic --batch 256 --device sim:a100-80gb
  Release to at most 1 GiB of host memory, then to disk, and look at it in ui.perfetto.dev:
    train_resnet --budget 300MiB --host-limit 1GiB --disk-limit 8GiB --trace trace.json

Exit codes: 0 done; 2 usage or bad input; 3 the budget is infeasible, or memory ran out;
130 interrupted, after finishing the step.)";

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// CLI11 reports a thrown ValidationError as a mistake in that flag.
template <class Parse>
auto checked(const std::string& flag, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const UsageError& error) {
    throw CLI::ValidationError(flag, error.what());
  }
}

double parse_early_start(const std::string& text) {
  if (lower(text) == "off") return 0;
  size_t end = 0;
  double share = -1;
  try {
    share = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || !(share > 0 && share <= 1)) {
    throw UsageError("'" + text + "' is neither 'off' nor a share above 0 and up to 1");
  }
  return share;
}

void add_task_flags(CLI::App& app, TrainFlags& flags) {
  const char* group = "What to train";
  app.add_option("--model", flags.model, "Network")
      ->check(CLI::IsMember(resnet_names()))
      ->group(group);
  app.add_option(
         "--stem", flags.stem,
         "First layers: cifar (3x3, no pooling) or imagenet (7x7, pooling); auto: cifar up "
         "to 64 x 64 pixels")
      ->check(CLI::IsMember({"auto", "cifar", "imagenet"}))
      ->group(group);
  app.add_option(
         "--data", flags.data,
         "digits (bundled), synthetic, mnist:DIR, cifar10:DIR or folder:DIR (class folders "
         "of JPEG and PNG)")
      ->group(group);
  app.add_option(
         "--image-size", flags.image_size,
         "Height and width that images are resized to [digits 16, mnist 28, cifar10 32, "
         "others 224]")
      ->check(CLI::Range(8, 4096))
      ->group(group);
  app.add_option("--classes", flags.classes,
                 "Classes of synthetic data, or of a folder that is not read [1000]")
      ->check(CLI::Range(2, 1 << 20))
      ->group(group);
  app.add_option("--batch", flags.batch, "Images per step")
      ->check(CLI::Range(1, 1 << 20))
      ->group(group);
  CLI::Option* steps = app.add_option("--steps", flags.steps, "Stop after this many steps")
                           ->check(CLI::Range(1, 1 << 30))
                           ->group(group);
  app.add_option("--epochs", flags.epochs,
                 "Times through the training images [digits 6, synthetic 20 steps, others 1]")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(steps)
      ->group(group);
}

void add_optimizer_flags(CLI::App& app, TrainFlags& flags) {
  const char* group = "Optimizer";
  app.add_option("--optimizer", flags.optimizer, "Update rule")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->group(group);
  app.add_option("--lr", flags.learning_rate, "Learning rate [sgd 0.05, adam and adamw 0.001]")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--lr-schedule", flags.schedule,
                 "constant, or cosine: falling to 0 over the run")
      ->check(CLI::IsMember({"cosine", "constant"}))
      ->group(group);
  app.add_option("--momentum", flags.momentum, "Momentum of sgd; 0 needs no state")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  app.add_option("--weight-decay", flags.weight_decay, "Weight decay")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--seed", flags.seed, "Of first weights and of the order of images")
      ->group(group);
}

void add_memory_flags(CLI::App& app, TrainFlags& flags) {
  const char* group = "Memory";
  app.add_option_function<std::string>(
         "--budget",
         [&flags](const std::string& text) {
           flags.budget = checked("--budget", text, parse_budget);
         },
         "All device memory that training may take: bytes, 300MiB, 1.5GiB, or 50% of what it "
         "takes "
         "without a budget [just that]")
      ->group(group);
  app.add_option_function<std::string>(
         "--host-limit",
         [&flags](const std::string& text) {
           flags.host_limit = checked("--host-limit", text, parse_bytes);
         },
         "Host memory to offload to; 0 for none [twice what training takes without a budget]")
      ->group(group);
  app.add_option_function<std::string>(
         "--disk-limit",
         [&flags](const std::string& text) {
           flags.disk_limit = checked("--disk-limit", text, parse_bytes);
         },
         "Disk space to offload to, when the host limit is reached; 0 for none [0]")
      ->group(group);
  app.add_option("--disk-directory", flags.disk_directory,
                 "Where that space is [TMPDIR, else /var/tmp]")
      ->group(group);
  std::vector<std::string> names{"none"};
  std::string about = "What to release, and how; none: never release";
  for (const PolicyInfo& policy : policies()) {
    names.emplace_back(policy.name);
    about += "; " + std::string(policy.name) + ": " + std::string(policy.about);
  }
  app.add_option("--policy", flags.policy, about)->check(CLI::IsMember(names))->group(group);
  app.add_option("--filter", flags.delta.filter, "What DELTA releases first")
      ->check(CLI::IsMember({"base", "lru", "greedy"}))
      ->group(group);
  app.add_option_function<std::string>(
         "--early-start",
         [&flags](const std::string& text) {
           flags.delta.early_start = checked("--early-start", text, parse_early_start);
         },
         "Release ahead of need above this share of the budget, or off [0.75]")
      ->group(group);
  app.add_option("--prefetch", flags.delta.prefetch,
                 "Most tensors brought back ahead of need; 0 for none")
      ->check(CLI::Range(0, 1 << 20))
      ->group(group);
  app.add_option_function<std::string>(
         "--assumption2",
         [&flags](const std::string& text) { flags.delta.assumption2 = text == "on"; },
         "on: release nothing in backward, but as the last resort (the paper's Assumption 2) "
         "[off]")
      ->check(CLI::IsMember({"on", "off"}))
      ->group(group);
  app.add_flag("!--no-overlap", flags.overlap, "Wait for each copy before going on")
      ->group(group);
}

void add_machine_flags(CLI::App& app, TrainFlags& flags) {
  const char* group = "Device and output";
  app.add_option("--device", flags.device,
                 "cpu, or sim:PROFILE, which computes nothing and keeps virtual time")
      ->group(group);
  app.add_option("--threads", flags.threads, "Compute threads; 0 for one per core")
      ->check(CLI::Range(0, 1024))
      ->group(group);
  app.add_flag("--dry-run", flags.dry_run, "Print what training needs, and end; reads no data")
      ->group(group);
  app.add_option("--json", flags.json, "Write results and every step's numbers to FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--trace", flags.trace, "Write a timeline for ui.perfetto.dev to FILE")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

Bytes Budget::resolve(Bytes unmanaged_peak) const {
  if (bytes) return *bytes;
  return align_down(Bytes(
      static_cast<int64_t>(std::floor(share * static_cast<double>(unmanaged_peak.count())))));
}

Budget parse_budget(std::string_view text) {
  if (text.empty() || text.back() != '%') return {.bytes = parse_bytes(text)};
  const std::string number(text.substr(0, text.size() - 1));
  size_t end = 0;
  double percent = 0;
  try {
    percent = std::stod(number, &end);
  } catch (const std::exception&) {
  }
  if (end != number.size() || !(percent > 0 && percent <= 1000)) {
    throw UsageError("'" + std::string(text) + "' is not a share such as 50%");
  }
  return {.bytes = std::nullopt, .share = percent / 100};
}

std::optional<TrainFlags> parse_flags(int argc, char** argv, int& exit_code) {
  CLI::App app(kDescription, "train_resnet");
  app.footer(kFooter);
  app.option_defaults()->always_capture_default();
  app.get_formatter()->column_width(34);
  TrainFlags flags;
  add_task_flags(app, flags);
  add_memory_flags(app, flags);
  add_optimizer_flags(app, flags);
  add_machine_flags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kUsage;
    return std::nullopt;
  }
  return flags;
}

}  // namespace tidemark
