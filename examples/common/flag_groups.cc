#include "examples/common/flag_groups.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/common/console.h"
#include "examples/common/output_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/registry.h"
#include "runtime/schedule/schedule_json.h"

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

// A flag whose value `parse` reads from its text.
template <class Value, class Parse>
CLI::Option* add_parsed_flag(CLI::App& app, const char* name, Value& value, Parse parse,
                             const char* about) {
  return app.add_option_function<std::string>(
      name,
      [&value, name, parse](const std::string& text) { value = checked(name, text, parse); },
      about);
}

// The flags of all programs that name files to write, and those that name files to read.
constexpr std::string_view kOutputs[] = {
    "--json",       "--trace",  "--save-costs", "--save",          "--save-vocab", "--csv",
    "--checkpoint", "--output", "--save-graph", "--save-schedule", "--svg"};
struct Input {
  std::string_view flag;
  const char* rewritten_by;  // an output flag that may name the same file
};
constexpr Input kInputs[] = {{"--data", ""},
                             {"--test", ""},
                             {"--weights", "--save"},
                             {"--load", "--save"},
                             {"--vocab", "--save-vocab"},
                             {"--costs", "--save-costs"},
                             {"--layout", ""},
                             {"--order", ""},
                             {"--remat", ""},
                             {"--show", ""},
                             {"--schedule", "--save-schedule"},
                             {"FILE", ""},
                             {"GRAPH", ""}};

void check_paths(const CLI::App& app) {
  std::vector<PathFlag> outputs, inputs;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    for (const std::string& value : option->results()) {
      if (value.empty()) throw UsageError(name + ": its value is empty");
      const bool is_folder = option->get_type_name() == "FOLDER";
      if (!is_folder && std::count(std::begin(kOutputs), std::end(kOutputs), name) > 0) {
        if (value.ends_with(".gz")) {
          throw UsageError(
              fmt::format("{}: {} would not be compressed; leave out .gz", name, value));
        }
        outputs.push_back({name, value});
      }
      for (const Input& input : kInputs) {
        if (input.flag == name) inputs.push_back({name, value, input.rewritten_by});
      }
    }
  }
  check_outputs(outputs, inputs);
}

// A filter and repairs need a policy that uses them. Some programs have none of these flags.
void check_policy_takes(const CLI::App& app, const std::string& flag,
                        void (*check)(std::string_view policy)) {
  const CLI::Option* const given = app.get_option_no_throw(flag);
  const CLI::Option* const policy = app.get_option_no_throw("--policy");
  if (!given || !policy || given->count() == 0) return;
  try {
    check(policy->as<std::string>());
  } catch (const UsageError& error) {
    throw UsageError(flag + ": " + error.what());
  }
}

// The fewest typing mistakes that turn one text into the other: a character too many, missing
// or wrong, or two neighbours swapped.
size_t edit_distance(std::string_view from, std::string_view to) {
  // Of the first i and the first j characters.
  std::vector<std::vector<size_t>> d(from.size() + 1, std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t wrong = from[i - 1] == to[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + wrong});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d.back().back();
}

// The flag that was probably meant by `name`, both without dashes; empty: none is close.
std::string closest_flag(const CLI::App& app, std::string_view name) {
  std::string closest;
  size_t least = name.size() < 4 ? 2 : 3;  // a typing mistake or two
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& flag : option->get_lnames()) {
      const size_t distance = edit_distance(name, flag);
      if (distance >= least) continue;
      least = distance;
      closest = flag;
    }
  }
  return closest;
}

// What is wrong with arguments that belong to no flag. A flag comes before its value, so the
// first that looks like one is named.
std::string explain_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  for (const std::string& extra : extras) {
    const std::string flag = extra.substr(0, extra.find('='));
    const size_t dashes = flag.find_first_not_of('-');
    if (dashes == 0 || dashes == std::string::npos ||
        std::isdigit(static_cast<unsigned char>(flag[dashes])) != 0) {
      continue;
    }
    const std::string meant = closest_flag(app, std::string_view(flag).substr(dashes));
    return "unknown flag " + flag + (meant.empty() ? "" : "; did you mean --" + meant + "?");
  }
  return "unexpected argument '" + extras.front() + "'";
}

// A default that the flag itself would refuse stands for a choice made later, which the flag's
// text describes.
void hide_refused_defaults(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    std::string value = option->get_default_str();
    if (value.empty()) continue;
    try {
      for (int i = 0;; ++i) {
        if (!(*option->get_validator(i))(value).empty()) option->default_str("");
      }
    } catch (const CLI::OptionNotFound&) {
      // That was the last.
    }
  }
}

// CLI11's, in words that say less about CLI11.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return without(CLI::Formatter::make_option_name(option, positional), "{false}");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    text = without(text, "INT:");
    text = without(text, "FLOAT:");
    text = without(text, "TEXT:");
    const size_t bound = text.find("NONNEGATIVE");
    return bound == std::string::npos ? text : text.replace(bound, 11, "FLOAT from 0");
  }

 private:
  static std::string without(std::string text, std::string_view part) {
    const size_t at = text.find(part);
    return at == std::string::npos ? text : text.erase(at, part.size());
  }
};

double parse_early_start(const std::string& text) {
  if (lower(text) == "off") return 0;
  size_t end = 0;
  double share = -1;
  try {
    share = std::stod(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || !(share > 0 && share <= 1)) {
    throw UsageError("'" + text + "' must be 'off' or a share above 0 and at most 1");
  }
  return share;
}

}  // namespace

CLI::Validator finite_number() {
  return {[](const std::string& text) -> std::string {
            double number = 0;
            const bool finite = CLI::detail::lexical_cast(text, number) &&
                                std::abs(number) <= std::numeric_limits<float>::max();
            return finite ? "" : "'" + text + "' is not a finite float32 number";
          },
          ""};
}

CLI::Validator whole_number() {
  return {[](const std::string& text) -> std::string {
            uint64_t number = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, number);
            const bool whole = error == std::errc() && rest == end;
            return whole ? "" : "'" + text + "' is not a whole number from 0 to 2^64 - 1";
          },
          ""};
}

void add_length_flags(CLI::App& app, RunFlags& flags, const std::string& batch,
                      const std::string& epochs) {
  app.add_option("--batch", flags.batch, batch)->check(CLI::Range(1, 1 << 20));
  CLI::Option* steps = app.add_option("--steps", flags.steps, "Stop after this many steps")
                           ->check(CLI::Range(1, 1 << 30));
  app.add_option("--epochs", flags.epochs, epochs)
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(steps);
}

void add_type_flag(CLI::App& app, const std::string& name, DType& type,
                   const std::string& about) {
  app.add_option_function<std::string>(
         name,
         [&type](const std::string& text) {
           type = text == "bf16" ? DType::kBFloat16 : DType::kFloat32;
         },
         about)
      ->check(CLI::IsMember({"float32", "bf16"}));
}

void add_dtype_flag(CLI::App& app, RunFlags& flags) {
  add_type_flag(
      app, "--dtype", flags.dtype,
      "Type of activations, and of weights where they are multiplied. bf16 (bfloat16) "
      "needs half the memory and is less precise; parameters, optimizer state and the "
      "loss stay float32 [float32]");
}

void add_optimizer_flags(CLI::App& app, RunFlags& flags, const OptimizerHelp& help) {
  app.option_defaults()->group("Optimizer");
  app.add_option("--optimizer", flags.optimizer, "Update rule")
      ->check(CLI::IsMember({"sgd", "adam", "adamw"}));
  app.add_option("--lr", flags.learning_rate, help.rate)
      ->check(finite_number())
      ->check(CLI::NonNegativeNumber);
  app.add_option("--lr-schedule", flags.schedule, help.schedule)
      ->check(CLI::IsMember(help.schedules));
  app.add_option("--momentum", flags.momentum, "Momentum of sgd; 0 needs no state")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--weight-decay", flags.weight_decay, help.decay)
      ->check(finite_number())
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", flags.seed, help.seed)->check(whole_number());
}

void add_memory_flags(CLI::App& app, RunFlags& flags) {
  app.option_defaults()->group("Memory");
  add_parsed_flag(
      app, "--memory", flags.memory, parse_memory,
      "Memory limit of the process, as the system counts it: bytes, 4GiB, or auto for all free "
      "memory. Other limits follow from it; on a GPU it limits host memory [no limit]");
  app.add_option_function<std::string>(
      "--budget",
      [&flags](const std::string& text) {
        if (text == "auto") {
          if (!flags.memory) flags.memory = MemoryAllowance{};  // --memory has the last word
        } else {
          flags.budget = checked("--budget", text, parse_budget);
        }
      },
      "Device memory limit of training: bytes, 300MiB, 1.5GiB, 50% of what it takes without a "
      "budget, or auto, which is --memory auto [100%]");
  add_parsed_flag(
      app, "--host-limit", flags.host_limit, parse_bytes,
      "Host memory to offload to; 0 for none [on cpu and sim:host 0; elsewhere twice what "
      "training takes without a budget]");
  add_parsed_flag(
      app, "--disk-limit", flags.disk_limit, parse_bytes,
      "Disk space to offload to once the host limit is reached; 0 for none [on cpu and "
      "sim:host as much as needed where that is faster than recomputing; elsewhere 0]");
  app.add_option("--disk-directory", flags.disk_directory,
                 "Folder for that space [the first of TMPDIR, /var/tmp and the current folder "
                 "that is on a disk, not in RAM]");
  std::vector<std::string> names{"none"};
  std::string about = "What to release, and how:\nnone: never release";
  for (const PolicyInfo& policy : policies()) {
    names.emplace_back(policy.name);
    about += "\n" + std::string(policy.name) + ": " + std::string(policy.about);
  }
  app.add_option("--policy", flags.policy, about)->check(CLI::IsMember(names));
  std::vector<std::string> filter_names;
  std::string first =
      "What " + policies_with_filter() +
      " release first [tide and price: what is cheapest to restore; others: base]:";
  for (const Filter& filter : filters()) {
    filter_names.emplace_back(filter.name);
    first += "\n" + std::string(filter.name) + ": the lowest " + std::string(filter.formula);
  }
  app.add_option("--filter", flags.delta.filter, first)->check(CLI::IsMember(filter_names));
  add_parsed_flag(app, "--early-start", flags.delta.early_start, parse_early_start,
                  "Release ahead of need above this share of the budget, or off [0.75]");
  app.add_option("--prefetch", flags.delta.prefetch,
                 "Maximum number of tensors restored ahead of need; 0 for none")
      ->check(CLI::Range(0, 1 << 20));
  std::string repairs =
      "Comma-separated changes to " + policies_with_repairs() +
      ": NAME switches a repair of the paper's method on, no-NAME off [all on; "
      "delta-paper: off]. Repairs (and the paper's method):";
  for (const DeltaRepair& repair : delta_repairs()) {
    repairs += "\n" + std::string(repair.name) + ": " + std::string(repair.about);
  }
  app.add_option("--repairs", flags.delta.repairs, repairs)
      ->type_name("LIST")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            try {
              changed_repairs({}, text);
              return "";
            } catch (const UsageError& error) {
              return error.what();
            }
          },
          ""));
  app.add_option_function<std::string>(
         "--plan", [&flags](const std::string& text) { flags.plan = text == "auto"; },
         "auto: once a step repeats, plan it in the background (order, releases, addresses) "
         "and run under the plan; off: the policy always decides [auto for "
         "tide, off for others]")
      ->check(CLI::IsMember({"off", "auto"}));
  app.add_option_function<std::string>(
         "--schedule",
         [&flags](const std::string& path) {
           try {
             flags.saved_schedule = std::make_shared<const SavedSchedule>(
                 schedule_from_json(read_text_file(path), path));
             flags.saved_schedule_file = path;
           } catch (const DataError& error) {
             throw CLI::ValidationError("--schedule", error.what());
           }
         },
         "Once a step repeats, run under the schedule in FILE, written by --save-schedule of "
         "the same training, instead of planning; where it does not apply, the policy decides")
      ->type_name("FILE");
  app.add_option("--save-schedule", flags.save_schedule,
                 "Write the schedule of the last steps to FILE; plan_graph --show FILE "
                 "explains it")
      ->type_name("FILE");
  app.add_flag("!--no-overlap", flags.overlap, "Wait for each copy before continuing");
}

void add_machine_flags(CLI::App& app, RunFlags& flags) {
  app.option_defaults()->group("Device and output");
  app.add_option(
      "--device", flags.device,
      "cpu; cuda, or cuda:N, a GPU; or sim:PROFILE, which computes nothing and keeps "
      "virtual time");
  app.add_flag("!--no-tf32", flags.tf32,
               "On cuda, multiply float32 matrices in full precision, which is slower");
  app.add_flag(
      "--allow-rounding", flags.allow_rounding,
      "Choose the algorithm of each convolution for this budget, before the first step; "
      "results then differ by rounding from those without the flag. Checkpoints hold "
      "the choice, and --resume keeps it");
  app.add_option(
      "--profile", flags.profile,
      "With --device cuda --dry-run: estimate for this GPU, a profile's name or file "
      "[the GPU of this machine; where there is none, a100-80gb]");
  app.add_option("--threads", flags.threads,
                 "Compute threads; 0 for OMP_NUM_THREADS, else one for each processor that "
                 "this process may use")
      ->check(CLI::Range(0, 1024));
  app.add_flag("--dry-run", flags.dry_run,
               "Print the memory that training needs and exit, without reading data");
  app.add_option("--json", flags.json,
                 "Write the results and the figures of every step to FILE")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--costs",
         [&flags](const std::string& path) {
           try {
             flags.costs = std::make_shared<const CostTable>(read_costs(path));
           } catch (const DataError& error) {
             throw CLI::ValidationError("--costs", error.what());
           }
         },
         "Take the costs of operators and copies from FILE instead of measuring them: "
         "decisions "
         "about memory are then the same on every device")
      ->type_name("FILE");
  app.add_option("--save-costs", flags.save_costs,
                 "Write the measured costs of operators and copies to FILE")
      ->type_name("FILE");
  app.add_option("--trace", flags.trace, "Write a timeline for ui.perfetto.dev to FILE")
      ->type_name("FILE");
  app.add_option(
         "--tensorboard", flags.tensorboard,
         "Write loss, speed and memory of each step to a new file in FOLDER; tensorboard "
         "--logdir FOLDER shows them")
      ->type_name("FOLDER");
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
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(34);
}

bool parse_or_explain(CLI::App& app, int argc, char** argv, int& exit_code) {
  hide_refused_defaults(app);
  try {
    app.parse(argc, argv);
    check_paths(app);
    check_policy_takes(app, "--filter", check_takes_filter);
    check_policy_takes(app, "--repairs", check_takes_repairs);
  } catch (const CLI::ParseError& error) {
    // A mistyped flag may also leave another without the flag that it needs.
    const bool asks = error.get_exit_code() == 0;  // for the help
    if (!asks && !app.remaining().empty()) {
      print_error("{}: {}\nRun with --help for more information.\n", app.get_name(),
                  explain_extras(app));
      exit_code = kUsageExitCode;
    } else {
      exit_code = app.exit(error) == 0 ? 0 : kUsageExitCode;
    }
    return false;
  } catch (const UsageError& error) {
    print_error("{}: {}\n", app.get_name(), error.what());
    exit_code = kUsageExitCode;
    return false;
  }
  return true;
}

}  // namespace tidemark
