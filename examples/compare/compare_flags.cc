#include "examples/compare/compare_flags.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <utility>

#include "examples/common/bert_flags.h"
#include "examples/common/bert_job.h"
#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "examples/common/resnet_flags.h"
#include "examples/common/resnet_job.h"
#include "examples/compare/engine.h"
#include "runtime/core/errors.h"
#include "runtime/policy/registry.h"

namespace tidemark::compare {
namespace {

constexpr const char* kDescription =
    R"(Trains one network under several policies and memory budgets at once, each in a lane of its
own, and shows, while they run, how each uses memory and what that costs. All lanes compute
the same: their losses are compared at every step, bit by bit.

In a terminal it shows a live view; with --serve, a page in the browser; otherwise one line per
step and a final table. Policies, lanes and budgets can be changed while it runs.)";

constexpr const char* kFooter = R"(
A lane is POLICY[:FILTER][@BUDGET]: tide, delta:lru, dtr@40%, none, delta:greedy@300MiB.

Examples:
  ResNet-18 on the bundled digits: no budget, then tide and two filters of delta in half the memory:
    compare_heuristics
  The same in the browser:
    compare_heuristics --serve 8080
  The three filters of DELTA on a simulated A100, at full size and in milliseconds:
    compare_heuristics --model resnet50 --data synthetic --batch 256 --device sim:a100-80gb
      --lane delta:base --lane delta:lru --lane delta:greedy --budget 40% --serve 8080
  BERT, and files for a report instead of a screen:
    compare_heuristics --model bert-tiny --steps 30 --json c.json --csv c.csv --svg c.svg
  The flags of BERT and GPT-2:
    compare_heuristics --model bert-tiny --help

On a real device, lanes take turns, one step each, and each one occupies its budget in memory. On
the simulator, each lane runs on its own thread; there are no values and so no losses.

Exit codes: 0 done; 1 losses differ, or a lane failed; 2 usage, bad input or a port in use;
3 the budget is infeasible, or memory ran out; 130 interrupted, after finishing the step.)";

constexpr double kByFace = -1, kWatchable = 4;
// Steps of a job that continues until it is stopped; learning-rate schedules need a number.
constexpr int64_t kEndless = 1 << 20;

void remove_flags(CLI::App& app, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (CLI::Option* option = app.get_option_no_throw(name)) app.remove_option(option);
  }
}

void add_compare_flags(CLI::App& app, CompareFlags& flags) {
  // Lanes specify these, or they make no sense for several trainings at once.
  remove_flags(app, {"--memory", "--policy", "--filter", "--dry-run", "--json", "--trace",
                     "--resume", "--checkpoint", "--checkpoint-every", "--load", "--save",
                     "--save-vocab", "--evaluate", "--schedule", "--save-schedule"});
  app.option_defaults()->group("Comparison");
  app.add_option_function<std::vector<std::string>>(
         "--lane",
         [&flags](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             try {
               flags.lanes.push_back(parse_lane(text));
             } catch (const UsageError& error) {
               throw CLI::ValidationError("--lane", error.what());
             }
           }
         },
         "A lane to start with; repeat the flag for several [none, tide, delta, delta:lru]")
      ->type_name("POLICY[:FILTER][@BUDGET]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.get_option("--budget")
      ->description(
          "Budget of lanes that do not have their own [50%, or the smallest feasible]");
  app.add_option(
         "--serve", flags.port,
         "Serve a live page at http://127.0.0.1:PORT, for this machine only; 0: any free port")
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--plain", flags.plain, "Print lines instead of the live view");
  flags.rate = kByFace;
  app.add_option("--rate", flags.rate,
                 "Limit each lane to this many steps per second; 0: no limit [live on "
                 "the simulator 4, else 0]")
      ->default_str("")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1e6));
  app.add_flag("--paused", flags.paused, "Wait for a command before the first step");
  const auto file = [&](const char* name, std::string& path, const char* about) {
    app.add_option(name, path, about)->type_name("FILE");
  };
  file("--json", flags.json, "At the end, write everything to FILE: lanes, curves, each step");
  file("--csv", flags.csv, "At the end, write one line per lane and step to FILE");
  file("--svg", flags.svg, "At the end, draw the curves and each lane's arena to FILE");
}

// A live comparison continues until it is stopped, unless a length is given.
template <class Network>
void set_length(Network& network, CompareFlags& flags, bool endless_allowed) {
  if (!flags.port && isatty(STDOUT_FILENO) == 0) flags.plain = true;
  if (flags.live() && network.steps == 0 && network.epochs == 0 && endless_allowed) {
    network.steps = kEndless;
    flags.steps = 0;
  }
  if (flags.rate == kByFace) {
    flags.rate = flags.live() && network.on_simulator() ? kWatchable : 0;
  }
}

template <class Flags>
bool parse(CLI::App& app, Flags& network, CompareFlags& flags, int argc, char** argv,
           int& exit_code) {
  add_flags(app, network);
  add_compare_flags(app, flags);
  return parse_or_explain(app, argc, argv, exit_code);
}

}  // namespace

std::optional<CompareFlags> parse_compare_flags(int argc, char** argv, int& exit_code) {
  CLI::App app(kDescription, "compare_heuristics");
  set_up_help(app, kFooter);
  CompareFlags flags;
  if (trains_text(argc, argv)) {
    BertFlags network;
    if (!parse(app, network, flags, argc, argv, exit_code)) return std::nullopt;
    try {
      set_length(network, flags, network.task != "squad");
      complete(network);
    } catch (const UsageError& error) {
      print_error("compare_heuristics: {}\n", error.what());
      exit_code = kUsageExitCode;
      return std::nullopt;
    }
    flags.run = static_cast<const RunFlags&>(network);
    flags.open = [network](bool with_data) { return open_bert_job(network, with_data); };
  } else {
    ResNetFlags network;
    if (!parse(app, network, flags, argc, argv, exit_code)) return std::nullopt;
    set_length(network, flags, true);
    flags.run = static_cast<const RunFlags&>(network);
    flags.open = [network](bool with_data) { return open_resnet_job(network, with_data); };
  }
  if (flags.lanes.empty()) {
    for (const char* lane : {"none", "tide", "delta", "delta:lru"}) {
      flags.lanes.push_back(parse_lane(lane));
    }
  }
  return flags;
}

}  // namespace tidemark::compare
