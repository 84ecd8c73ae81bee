// Measures what running by a plan saves compared with dynamic steps: the issuing thread's time
// for memory (finding and freeing blocks, deciding what to release), and the arena's peak.
//
//   plan_overhead [FILE.json]
//
// Trains ResNets at large batch on the simulator, where launches are bookkeeping only. Each
// mode runs in a session of its own. Figures are medians over its last steps, less the clock's
// own time, per operator that runs, recomputations included. The modes are: unmanaged; tide
// with a budget of the unmanaged peak, and by plan; tide and delta within 60 % of it, and by
// plans that release as they did; policies that decide live, each within half of it.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/first_line.h"
#include "bench/run_main.h"
#include "bench/training_run.h"
#include "runtime/core/errors.h"
#include "runtime/executor/step_planner.h"
#include "runtime/residency/residency.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSteps = 40;
constexpr int kCounted = 15;  // the last

struct Mode {
  const char* name;
  const char* policy;
  double share = 1;  // share of the unmanaged peak
  bool plan = false;
  const char* filter = "";  // delta's; empty: its own
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The time that an empty interval seems to take.
double clock_ns() {
  using Clock = std::chrono::steady_clock;
  std::vector<double> values(10001);
  for (double& value : values) {
    const auto begin = Clock::now();
    value = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  return median(std::move(values));
}

Json measure(const TrainingRun& run, const Mode& mode, Bytes unmanaged_peak) {
  SessionOptions options{.device = run.device, .threads = 1};
  options.policy = mode.policy;
  if (*mode.filter) options.delta.filter = mode.filter;
  options.budget = share_of(unmanaged_peak, mode.share);
  if (mode.share >= 1) options.budget = unmanaged_peak;
  if (mode.share >= 1) options.unmanaged_peak = unmanaged_peak;
  options.host_limit = unmanaged_peak;
  options.residency.time_memory = true;
  Session session(options);
  if (mode.plan) session.plan_steps({.background = false});
  const std::function<void()> step = program_of(run)().front();
  std::vector<double> memory, host;
  StepStats last;
  for (int i = 0; i < kSteps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    last = session.step(step);
    const std::chrono::duration<double, std::nano> took =
        std::chrono::steady_clock::now() - begin;
    if (i < kSteps - kCounted) continue;
    memory.push_back(static_cast<double>(last.memory_time.count()) -
                     clock_ns() * static_cast<double>(last.memory_timings));
    host.push_back(took.count());
  }
  const auto operators = static_cast<double>(last.operators + last.recomputes);
  Json row{{"model", run.model},
           {"batch", run.batch},
           {"mode", mode.name},
           {"planned", last.planned},
           {"operators", last.operators},
           {"recomputes", last.recomputes},
           {"peak_bytes", last.peak_reserved.count()},
           {"memory_us_per_step", median(memory) / 1e3},
           {"memory_ns_per_operator", median(memory) / operators},
           {"host_us_per_step", median(host) / 1e3},
           {"step_ms", static_cast<double>(last.duration.count()) / 1e6}};
  if (const BoundSchedule* bound = session.planner() ? session.planner()->current() : nullptr) {
    const Schedule& schedule = bound->schedule;
    row["plan_seconds"] = bound->seconds;
    const Bytes apart =
        schedule.residents_apart ? session.residency().storages().bytes_in_use() : Bytes(0);
    row["plan_peak_bytes"] = (apart + schedule.peak).count();
    row["plan_bound_bytes"] = (apart + schedule.peak_bound).count();
  }
  return row;
}

int run(int argc, char** argv) {
  Json rows = Json::array();
  const auto report = [&](const TrainingRun& run, const Mode& mode, Bytes unmanaged_peak) {
    Json row = measure(run, mode, unmanaged_peak);
    fmt::print("{:<18}{:<22}{:>10.3f}{:>18.0f}{:>14.0f}{:>10.1f}\n", run.model, mode.name,
               row["peak_bytes"].get<double>() / (1 << 30),
               row["memory_ns_per_operator"].get<double>(),
               row["host_us_per_step"].get<double>(), row["step_ms"].get<double>());
    rows.push_back(std::move(row));
  };
  fmt::print("{:<18}{:<22}{:>10}{:>18}{:>14}{:>10}\n", "network", "mode", "peak GiB",
             "memory ns/op", "host us/step", "step ms");
  for (const auto& [model, batch] :
       {std::pair{"resnet18", 256}, {"resnet50", 256}, {"resnext50_32x4d", 256}}) {
    const TrainingRun run{.model = model, .device = "sim:a100-80gb", .batch = batch};
    SessionOptions options{.device = run.device, .threads = 1};
    const Bytes peak = measure_unmanaged(options, program_of(run)).peak;
    for (const Mode& mode :
         {Mode{"unmanaged", "none"}, Mode{"tide, 100 %", "tide"},
          Mode{"planned", "tide", 1, true}, Mode{"tide, 60 %", "tide", 0.6},
          Mode{"tide, 60 %, planned", "tide", 0.6, true}, Mode{"delta, 60 %", "delta", 0.6},
          Mode{"delta, 60 %, planned", "delta", 0.6, true}}) {
      report(run, mode, peak);
    }
    if (run.model != "resnet50") continue;
    for (const Mode& mode : {Mode{"delta base, 50 %", "delta", 0.5, false, "base"},
                             Mode{"delta lru, 50 %", "delta", 0.5, false, "lru"},
                             Mode{"delta greedy, 50 %", "delta", 0.5, false, "greedy"},
                             Mode{"lru, 50 %", "lru", 0.5}, Mode{"greedy, 50 %", "greedy", 0.5},
                             Mode{"dtr, 50 %", "dtr", 0.5}}) {
      report(run, mode, peak);
    }
  }
  if (argc > 1) {
    const std::string folder = std::filesystem::absolute(argv[1]).parent_path();
    const Json all{{"device", "simulated; host times of this machine, one thread"},
                   {"commit", commit_of(folder)},
                   {"rows", rows}};
    std::ofstream(argv[1]) << all.dump(1) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  if (const auto code = tidemark::explain_usage(
          argc, argv, argc > 2 || (argc > 1 && argv[1][0] == '-'),
          "plan_overhead [JSON_FILE]\n\nTimes what following a plan costs the host.")) {
    return *code;
  }
  try {
    return tidemark::run(argc, argv);
  } catch (const tidemark::Error& error) {
    fmt::print(stderr, "plan_overhead: {}\n", error.what());
    return 1;
  }
}
