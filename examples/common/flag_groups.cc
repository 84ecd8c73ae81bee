#include "examples/common/flag_groups.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

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

}  // namespace

CLI::Validator finite_number() {
  return {[](const std::string& text) -> std::string {
            double number = 0;
            const bool finite = CLI::detail::lexical_cast(text, number) &&
                                std::abs(number) <= std::numeric_limits<float>::max();
            return finite ? "" : "'" + text + "' is not a finite number of float32";
          },
          ""};
}

void add_length_flags(CLI::App& app, RunFlags& flags, const std::string& group,
                      const std::string& batch, const std::string& epochs) {
  app.add_option("--batch", flags.batch, batch)->check(CLI::Range(1, 1 << 20))->group(group);
  CLI::Option* steps = app.add_option("--steps", flags.steps, "Stop after this many steps")
                           ->check(CLI::Range(1, 1 << 30))
                           ->group(group);
  app.add_option("--epochs", flags.epochs, epochs)
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(steps)
      ->group(group);
}

void add_dtype_flag(CLI::App& app, RunFlags& flags, const std::string& group) {
  app.add_option_function<std::string>(
         "--dtype",
         [&flags](const std::string& text) {
           flags.dtype = text == "bf16" ? DType::kBFloat16 : DType::kFloat32;
         },
         "Of activations, and of the weights that they are multiplied by. bf16 (bfloat16): "
         "about "
         "half the memory for them, less precise; parameters, optimizer state and the loss "
         "stay "
         "float32 [float32]")
      ->check(CLI::IsMember({"float32", "bf16"}))
      ->group(group);
}

void add_optimizer_flags(CLI::App& app, RunFlags& flags, const OptimizerHelp& help) {
  const char* group = "Optimizer";
  app.add_option("--optimizer", flags.optimizer, "Update rule")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}))
      ->group(group);
  app.add_option("--lr", flags.learning_rate, help.rate)
      ->check(finite_number())
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--lr-schedule", flags.schedule, help.schedule)
      ->check(CLI::IsMember(help.schedules))
      ->group(group);
  app.add_option("--momentum", flags.momentum, "Momentum of sgd; 0 needs no state")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  app.add_option("--weight-decay", flags.weight_decay, "Weight decay")
      ->check(finite_number())
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--seed", flags.seed, help.seed)->group(group);
}

void add_memory_flags(CLI::App& app, RunFlags& flags) {
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
  app.add_option("--filter", flags.delta.filter,
                 "What delta and tide release first [delta: base; tide: by price]")
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
  app.add_option_function<std::string>(
         "--plan", [&flags](const std::string& text) { flags.plan = text == "auto"; },
         "auto: once a step repeats, decide its order and addresses ahead, and run by that "
         "plan "
         "where it fits into the budget [off]")
      ->check(CLI::IsMember({"off", "auto"}))
      ->group(group);
  app.add_flag("!--no-overlap", flags.overlap, "Wait for each copy before going on")
      ->group(group);
}

void add_machine_flags(CLI::App& app, RunFlags& flags) {
  const char* group = "Device and output";
  app.add_option(
         "--device", flags.device,
         "cpu; cuda, or cuda:N, a GPU; or sim:PROFILE, which computes nothing and keeps "
         "virtual time")
      ->group(group);
  app.add_flag("!--no-tf32", flags.tf32,
               "On cuda, keep products of float32 in float32 (slower on tensor cores)")
      ->group(group);
  app.add_option(
         "--profile", flags.profile,
         "With --device cuda --dry-run: estimate for this GPU, a profile's name or file "
         "[the GPU of this machine; where there is none, a100-80gb]")
      ->group(group);
  app.add_option("--threads", flags.threads,
                 "Compute threads; 0 for OMP_NUM_THREADS, else one for each processor that "
                 "this process may use")
      ->check(CLI::Range(0, 1024))
      ->group(group);
  app.add_flag("--dry-run", flags.dry_run, "Print what training needs, and end; reads no data")
      ->group(group);
  app.add_option("--json", flags.json, "Write results and every step's numbers to FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option_function<std::string>(
         "--costs",
         [&flags](const std::string& path) {
           try {
             flags.costs = std::make_shared<const CostTable>(read_costs(path));
           } catch (const DataError& error) {
             throw CLI::ValidationError("--costs", error.what());
           }
         },
         "Take operators and copies to cost what FILE says, and learn nothing: what is done to "
         "memory is then the same on any device")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--save-costs", flags.save_costs,
                 "Write what operators and copies were found to cost to FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--trace", flags.trace, "Write a timeline for ui.perfetto.dev to FILE")
      ->type_name("FILE")
      ->group(group);
}

std::string model_of(int argc, char** argv) {
  constexpr std::string_view kFlag = "--model";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == kFlag && i + 1 < argc) return argv[i + 1];
    if (argument.starts_with("--model=")) return std::string(argument.substr(kFlag.size() + 1));
  }
  return "";
}

void set_up_help(CLI::App& app, const std::string& footer) {
  app.footer(footer);
  app.option_defaults()->always_capture_default();
  app.get_formatter()->column_width(34);
}

bool parse_or_explain(CLI::App& app, int argc, char** argv, int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kUsageExitCode;
    return false;
  }
  return true;
}

}  // namespace tidemark
