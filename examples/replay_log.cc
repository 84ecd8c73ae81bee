// Runs a program that DTR's prototype has recorded under a budget and a policy of ours.
// `replay_log --help` explains.
//
//   $ replay_log data/logs/resnet.log --budget 50% --policy dtr
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "examples/common/bundled.h"
#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "examples/common/output_file.h"
#include "examples/common/report.h"
#include "examples/common/run.h"
#include "examples/dtr_log/replay.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr const char* kProgram = "replay_log";

constexpr const char* kDescription =
    R"(Runs a recorded program, whatever framework it comes from, under a memory budget on the
simulator, and reports how much more it computes than without one.

The log is in DTR's format (JSON lines: CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY, COPY_FROM,
RELEASE), plain or gzipped. Operators take the time in the log; the times of copies and moves
follow from --profile. If the policy runs out of memory, another replaces it, and the output says
so.)";

constexpr const char* kFooter = R"(
Examples:
  h_DTR in half the memory:
    replay_log data/logs/resnet.log --budget 50% --policy dtr
  Ours, which learns from earlier steps, with host memory to offload to:
    replay_log data/logs/resnet.log --budget 50% --host-limit 1GiB

Exit codes: 0 done; 2 usage or bad input; 3 the budget is infeasible.)";

struct ReplayFlags {
  std::string log;
  std::string profile = "a100-80gb";
  std::optional<int> rounds;  // none: until the policy has settled
};

using Json = nlohmann::ordered_json;

void write_json(const Json& json, const std::string& path) {
  if (!path.empty()) write_output(path, json.dump(1) + "\n");
}

int replay_log(const ReplayFlags& flags, const RunFlags& run) {
  const DeviceProfile profile = load_profile(flags.profile);
  const DtrLog log = read_dtr_log(given_or_bundled(flags.log));
  const ReplayResult free = replay_unmanaged(log, profile);
  SessionOptions options = session_options(run);
  options.unmanaged_peak = free.peak;
  options.budget = run.budget ? run.budget->resolve(free.peak) : free.peak;
  options.host_limit = run.host_limit.value_or(Bytes(0));
  options.disk_limit = run.disk_limit.value_or(Bytes(0));

  const DeltaOptions& delta = run.delta;
  Json json;
  json["program"] = kProgram;
  json["log"] = flags.log;
  json["device"] = "sim:" + flags.profile;
  json["policy"] = run.policy;
  json["filter"] = delta.filter.empty() ? Json(nullptr) : Json(delta.filter);
  json["calls"] = log.calls;
  json["budget_bytes"] = options.budget->count();
  json["unmanaged_peak_bytes"] = free.peak.count();
  json["base_compute_ns"] = log.time.count();
  json["unmanaged_ms"] = to_ms(free.stats.duration);
  print_out("{}: {} calls, {:.2f} ms; {} without a budget; the budget is {}\n", flags.log,
            log.calls, to_ms(log.time), format_bytes(free.peak), format_bytes(*options.budget));
  ReplayResult result;
  try {
    result = replay_feasibly(log, options, profile, flags.rounds);
  } catch (const InfeasibleBudget&) {
    write_json(json, run.json);
    throw;
  }
  const StepStats& s = result.stats;
  json["schedule"] = result.schedule.name();
  json["rounds"] = result.rounds;
  json["planned"] = s.planned;
  json["peak_reserved_bytes"] = result.peak.count();
  json["total_compute_ns"] = result.computed.count();
  json["overhead"] = result.overhead(log);
  json["ms"] = to_ms(s.duration);
  json["recomputes"] = s.recomputes;
  json["evictions"] = s.evictions;
  json["planned_releases"] = result.planned;
  json["evicted_bytes"] = s.evicted_bytes.count();
  json["offloads"] = s.offloads;
  json["offload_bytes"] = s.offload_bytes.count();
  json["reloads"] = s.reloads;
  json["reload_bytes"] = s.reload_bytes.count();
  json["clean_drops"] = s.clean_drops;
  json["compactions"] = s.compactions;
  json["stall_ms"] = to_ms(s.stall_time);
  write_json(json, run.json);
  print_out("{}", stand_in_note(run.policy, result.schedule));
  print_out("\n  policy      {}{}\n", result.schedule.name(),
            delta.filter.empty() ? "" : ", filter " + delta.filter);
  print_out("  compute     {:.2f} ms, {:.4f} times the log's\n", to_ms(result.computed),
            result.overhead(log));
  print_out("  step        {:.2f} ms, {:.4f} times the unmanaged one's\n", to_ms(s.duration),
            static_cast<double>(s.duration.count()) /
                static_cast<double>(std::max(Nanos(1), free.stats.duration).count()));
  print_out("  released    {} evictions ({}), {} calls run again\n", s.evictions,
            format_bytes(s.evicted_bytes), s.recomputes);
  print_out("  moved       {} out in {} copies, {} back in {}; {} blocks moved together\n",
            format_bytes(s.offload_bytes), s.offloads, format_bytes(s.reload_bytes), s.reloads,
            s.compactions);
  print_out("  rounds      {}; the last {}\n", result.rounds,
            s.planned ? fmt::format("followed a plan of {} releases", result.planned)
                      : "was the policy's");
  print_out("  arena       {} at most\n", format_bytes(result.peak));
  return kDone;
}

int run_replay_log(int argc, char** argv) {
  CLI::App app(kDescription, kProgram);
  set_up_help(app, kFooter);
  ReplayFlags flags;
  RunFlags run;
  app.add_option("FILE", flags.log,
                 "The log; data/logs/ of the project is found from any folder")
      ->required();
  app.add_option("--profile", flags.profile, "Device whose link and memory are simulated");
  app.add_option(
         "--rounds", flags.rounds,
         "Replay the log this many times and report the last [until the policy has settled, "
         "at most 20]")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--json", run.json, "Write the figures to FILE")->type_name("FILE");
  add_memory_flags(app, run);
  for (const char* name : {"--plan", "--schedule", "--save-schedule"}) {
    app.remove_option(app.get_option(name));  // only training programs run by schedules
  }
  app.remove_option(app.get_option("--memory"));  // a simulation takes none
  app.get_option("--host-limit")
      ->description("Host memory to offload to; 0 for none, as in DTR [0]");
  app.get_option("--disk-limit")
      ->description("Disk space to offload to once the host limit is reached; 0 for none [0]");
  int exit_code = 0;
  if (!parse_or_explain(app, argc, argv, exit_code)) return exit_code;
  return replay_log(flags, run);
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  return tidemark::run_program(tidemark::kProgram,
                               [&] { return tidemark::run_replay_log(argc, argv); });
}
