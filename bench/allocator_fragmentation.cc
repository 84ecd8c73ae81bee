// Measures how much memory the allocator loses to fragmentation, compared with other rules. It
// is the only source of the figures on fragmentation in bench/RESULTS.md.
//
//   allocator_fragmentation FOLDER [JSON]
//
// Replays each trace of the folder and reports two figures, relative to the peak of live bytes:
// the highest end offset, and the smallest capacity in which the trace completes without a
// move. Then trains again, within budgets, with an arena for each rule. The runtime reacts to
// the rule there, so the figures are the bytes moved, copied and recomputed.
#include <spdlog/fmt/fmt.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/first_line.h"
#include "bench/fit_rule.h"
#include "bench/run_main.h"
#include "bench/training_run.h"
#include "runtime/core/errors.h"
#include "runtime/telemetry/summary.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
  return text.data();
}

double ratio(Bytes a, Bytes b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

// Geometric mean and maximum of the added values.
class Ratios {
 public:
  void add(double value) {
    log_sum_ += std::log(value);
    largest_ = std::max(largest_, value);
    ++count_;
  }
  double mean() const { return std::exp(log_sum_ / count_); }
  Json json() const { return {{"mean", mean()}, {"worst", largest_}}; }
  std::string text() const { return fmt::format("{:.3f} ({:.3f})", mean(), largest_); }

 private:
  double log_sum_ = 0;
  double largest_ = 0;
  int count_ = 0;
};

// Groups are "unmanaged", "room50" and "room10".
template <class T>
using ByGroup = std::map<std::string, T, std::greater<>>;

// Prints a row for each rule; print(group, entry) writes an entry and returns it as JSON.
template <class T, class Print>
Json print_summary(const std::map<std::string, ByGroup<T>>& summary, const Print& print) {
  Json json;
  for (const auto& [rule, groups] : summary) {
    fmt::print("{:26}", rule);
    for (const auto& [group, entry] : groups) json[rule][group] = print(group, entry);
    fmt::print("\n");
  }
  return json;
}

std::vector<std::string> traces_in(const std::string& folder) {
  std::set<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".txt") || path.ends_with(".txt.gz")) paths.insert(path);
  }
  if (paths.empty()) throw UsageError("no traces (*.txt, *.txt.gz) in " + folder);
  return {paths.begin(), paths.end()};
}

Json replayed(const std::string& folder) {
  std::map<std::string, ByGroup<Ratios>> summary;
  Json rows = Json::array();
  for (const std::string& path : traces_in(folder)) {
    const MemoryTrace trace = read_trace(path);
    const auto room = trace.about.find("room");
    const std::string group = room == trace.about.end() ? "unmanaged" : "room" + room->second;
    const Bytes live = trace.max_live();
    const std::string name = std::filesystem::path(path).filename().string();
    Json row{{"trace", name.substr(0, name.find(".txt"))},
             {"events", trace.events.size()},
             {"max_live_bytes", live.count()}};
    const auto add = [&](const std::string& rule, Bytes peak, Bytes capacity) {
      row["rules"][rule] = {{"peak_bytes", peak.count()}, {"capacity_bytes", capacity.count()}};
      summary[rule][group].add(ratio(capacity, live));
    };
    for (const FitRule& rule : fit_rules()) {
      const Bytes peak = replay(trace, rule, kEndless).value();
      add(rule.name, peak, smallest_capacity(trace, rule));
    }
    const Bytes offline = offline_by_size(trace);
    add("offline_by_size", offline, offline);
    rows.push_back(row);
  }

  Json result;
  fmt::print("capacity without a move over max live: mean (worst)\n");
  result["summary"] =
      print_summary(summary, [](const std::string& group, const Ratios& ratios) {
        fmt::print("  {} {}", group, ratios.text());
        return ratios.json();
      });
  result["traces"] = rows;
  return result;
}

Json trained() {
  struct Sum {
    Ratios time;        // relative to the arena's own rule
    double moving = 0;  // shares of the time
    int64_t compactions = 0;
    int runs = 0;
  };
  std::map<std::string, ByGroup<Sum>> summary;
  Json rows = Json::array();
  for (const TrainingRun& run : training_runs()) {
    if (!run.room) continue;
    const std::string group = "room" + std::to_string(std::lround(*run.room * 100));
    Json row{{"run", run.name()}};
    double arena_ms = 0;
    for (const FitRule& rule : fit_rules()) {
      if (rule.size_classes != 0) continue;
      const TrainingResult result = train(run, [&](Device& device, Bytes capacity) {
        return std::make_unique<FitArena>(device, capacity, rule);
      });
      StepStats total;
      for (const StepStats& step : result.steps) total += step;
      const double ms = to_ms(total.duration);
      if (rule.fit == Fit::kArena) arena_ms = ms;
      Sum& sum = summary[rule.name][group];
      sum.time.add(ms / arena_ms);
      sum.moving += to_ms(result.moving) / ms;
      sum.compactions += total.compactions;
      ++sum.runs;
      row["budget_bytes"] = result.budget.count();
      row["rules"][rule.name] = {
          {"compactions", total.compactions},
          {"moved_bytes", result.moved.count()},
          {"moving_ms", to_ms(result.moving)},
          {"offloaded_bytes", total.offload_bytes.count()},
          {"reloaded_bytes", total.reload_bytes.count()},
          {"recomputes", total.recomputes},
          {"simulated_ms", ms},
      };
    }
    rows.push_back(row);
  }

  Json result;
  fmt::print("\ntraining within budgets: time over the arena's, mean (worst); slides\n");
  result["summary"] = print_summary(summary, [](const std::string& group, const Sum& sum) {
    const double moving = sum.moving / sum.runs;
    fmt::print("  {} {}; {} slides, {:.1f} % of the time", group, sum.time.text(),
               sum.compactions, 100 * moving);
    return Json{{"time_over_arena", sum.time.json()},
                {"compactions", sum.compactions},
                {"moving_share_of_time", moving}};
  });
  result["runs"] = rows;
  return result;
}

int run(int argc, char** argv) {
  if (const auto code =
          explain_usage(argc, argv, argc < 2 || argc > 3 || argv[1][0] == '-',
                        "allocator_fragmentation FOLDER [JSON]\n\nReplays the traces in "
                        "FOLDER, as record_traces wrote them, and reports fragmentation.")) {
    return *code;
  }
  try {
    Json report{{"device", "simulated; workspaces of sim:host are those of " + processor() +
                               ", 2 threads"},
                {"commit", commit_of(argv[1])},
                {"date", today()}};
    report["replayed"] = replayed(argv[1]);
    report["trained"] = trained();
    if (argc == 3) {
      std::ofstream file(argv[2]);
      file << report.dump(1) << "\n";
      if (!file.flush()) throw DataError(argv[2], "cannot be written");
    }
  } catch (const Error& error) {
    std::cerr << "allocator_fragmentation: " << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) { return tidemark::run(argc, argv); }
