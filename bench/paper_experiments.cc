// The DELTA paper's experiments (Tang et al., 2022), and overhead against saving for every
// policy, on the simulator with the A100 profile. Each experiment writes one JSON file.
//
//   paper_experiments [--out bench/results/papers] [--only curves] [--jobs 2] [--force]
//
// A stopped run can be continued: rows that a file already has are skipped if the same commit
// and the same program made them. bench/papers_report.py runs this program and writes the
// report.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/paper_results.h"
#include "bench/paper_runs.h"
#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/core/listed.h"
#include "runtime/policy/delta_options.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/registry.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {
namespace {

using namespace literals;

// All policies but tide's parts, delta with each filter.
std::vector<std::string> compared_policies() {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : policies()) {
    if (policy.name == "price" || policy.name == "austere") continue;
    names.emplace_back(policy.name);
    if (policy.name != "delta") continue;
    for (const Filter& filter : filters()) {
      if (filter.name != "base") names.push_back("delta:" + std::string(filter.name));
    }
  }
  return names;
}

// What a policy is run with, for the report's tables.
Json parameters_of(const std::string& name) {
  const PaperPolicy policy = parse_policy(name);
  const PolicyInfo& info = find_policy(policy.name);
  const DeltaOptions options;
  Json json{{"about", info.about}};
  if (info.takes_repairs) {
    const Filter& filter = find_filter(policy.filter.empty() ? "base" : policy.filter);
    json["filter"] = fmt::format("{}, {}", filter.name, filter.formula);
    json["early start"] = fmt::format("from {:g} of the arena", options.early_start);
    json["prefetch"] = fmt::format("at most {} at a time", options.prefetch);
    const DeltaRepairs on =
        changed_repairs(info.reference ? delta_as_printed() : DeltaRepairs(), policy.repairs);
    std::vector<std::string> repairs;
    for (const DeltaRepair& repair : delta_repairs()) {
      if (on.*repair.on) repairs.emplace_back(repair.name);
    }
    json["repairs"] = repairs.size() == delta_repairs().size() ? "all" : listed(repairs);
  }
  static const std::map<std::string, const char*> kOthers{
      {"tide", "default effort of its searches; no filter"},
      {"dtr", "costs of neighbourhoods by union-find (~e*); all storages are candidates"},
      {"lru", "no parameters"},
      {"greedy", "no parameters"},
      {"msps", "an in-trigger moves ahead by 5 % of its copy's time when the copy is late"},
      {"checkpoint", "sqrt(n) segments of n calls"},
      {"random", "seed 1"}};
  if (const auto other = kOthers.find(policy.name); other != kOthers.end()) {
    json["parameters"] = other->second;
  }
  return json;
}

Experiment parameters() {
  Experiment experiment{"parameters", "what each policy is run with", {}};
  for (const std::string& policy : compared_policies()) {
    experiment.tasks.push_back({policy, [policy] { return parameters_of(policy); }});
  }
  return experiment;
}

struct PaperModelEntry {
  const char* id;
  PaperModel model;
};
const std::vector<PaperModelEntry> kCurves{
    {"resnet50_b256", {.network = "resnet50", .batch = 256}},
    {"resnet101_b128", {.network = "resnet101", .batch = 128}},
    {"bert_base_512_b32", {.network = "bert-base", .batch = 32, .length = 512}},
    {"efficientnet_b0_b256", {.network = "efficientnet_b0", .batch = 256}},
    {"resnext50_b128", {.network = "resnext50_32x4d", .batch = 128}},
};

double share(Bytes part, Bytes whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}
double rounded(double value, int digits = 4) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

Json to_json(const PaperModel& model) {
  Json json{{"network", model.network}, {"batch", model.batch}};
  if (model.is_text()) {
    json["length"] = model.length;
    json["task"] = model.squad ? "squad" : "mlm";
    json["attention"] = model.eager ? "materialised" : "memory-efficient";
  }
  return json;
}

Json to_json(const PaperNeed& need) {
  return {{"unmanaged_peak", need.unmanaged.peak.count()},
          {"unmanaged_live", need.unmanaged.live.count()},
          {"operators", need.unmanaged.operators},
          {"minimum", need.minimum.count()},
          {"ms", rounded(need.ms)}};
}

Json to_json(const PaperResult& result, const PaperRun& run, const PaperNeed& need) {
  Json json{{"budget", run.budget.count()},
            {"share", rounded(share(run.budget, need.unmanaged.peak), 5)}};
  if (!result.failure.empty()) {
    json["failure"] = result.failure;
    return json;
  }
  if (result.gave_up) {
    json["gave_up_at_times"] = run.give_up;
    return json;
  }
  json["ms"] = rounded(result.ms);
  json["overhead"] = rounded(result.ms / need.ms - 1, 5);
  json["steps"] = result.steps;
  json["peak"] = result.peak.count();
  json["peak_live"] = result.peak_live.count();
  json["kept"] = result.peak <= run.budget;
  json["evictions"] = result.last.evictions;
  json["recomputes"] = result.last.recomputes;
  json["offload_bytes"] = result.last.offload_bytes.count();
  json["reload_bytes"] = result.last.reload_bytes.count();
  json["stall_ms"] = rounded(to_seconds(result.last.stall_time) * 1e3);
  return json;
}

// From the minimum up: steps of 2 % of the unmanaged peak below 40 %, then of 5 %.
std::vector<Bytes> budgets(const PaperNeed& need) {
  const Bytes peak = need.unmanaged.peak;
  std::set<Bytes> all{align_up(need.minimum), peak};
  for (int percent = 2; percent < 100; percent += percent < 40 ? 2 : 5) {
    const Bytes budget = share_of(peak, percent / 100.0);
    if (budget > need.minimum) all.insert(budget);
  }
  return {all.begin(), all.end()};
}

Json curve(const PaperModel& model, const std::string& policy) {
  const PaperNeed need = measure_need(model);
  Json json{{"need", to_json(need)}, {"points", Json::array()}};
  for (const Bytes budget : budgets(need)) {
    const PaperRun run{.policy = parse_policy(policy),
                       .budget = budget,
                       .host_limit = 2 * need.unmanaged.peak};
    json["points"].push_back(to_json(run_paper(model, need, run), run, need));
  }
  return json;
}

std::vector<Experiment> curves() {
  std::vector<Experiment> all;
  for (const PaperModelEntry& entry : kCurves) {
    Experiment experiment{std::string("curves_") + entry.id,
                          "step time and peak against the budget, for each policy",
                          {}};
    experiment.tasks.push_back({"model", [entry] { return to_json(entry.model); }});
    for (const std::string& policy : compared_policies()) {
      experiment.tasks.push_back(
          {policy, [entry, policy] { return curve(entry.model, policy); }});
    }
    all.push_back(std::move(experiment));
  }
  return all;
}

// Table II and Fig. 3. The paper gives the memory that each method used of a budget, but not
// the budget. Here each method gets the same share of our unmanaged peak as DELTA's figure is
// of the paper's baseline.
struct PeakEntry {
  const char* id;
  PaperModel model;
  double baseline_mb, dtr_mb, delta_mb;  // from the paper; 0: not given
  bool smallest = true;  // also looks for the smallest budget that is not too slow
};
// Of the baseline, where the paper gives no figure for DELTA: what it saves at batch 256.
constexpr double kUsualShare = 0.4;

const std::vector<PeakEntry> kPeaks{
    {"resnet50_b128", {.network = "resnet50", .batch = 128}, 11200, 10500, 4110},
    {"resnet50_b256", {.network = "resnet50", .batch = 256}, 21300, 0, 8400},
    {"resnet50_b512", {.network = "resnet50", .batch = 512}, 0, 0, 0, false},
    {"resnet50_b1024", {.network = "resnet50", .batch = 1024}, 0, 0, 0, false},
    {"resnet50_b1072", {.network = "resnet50", .batch = 1072}, 0, 32870, 0, false},
    {"resnet50_b1814", {.network = "resnet50", .batch = 1814}, 0, 0, 62600, false},
    {"resnet101_b128", {.network = "resnet101", .batch = 128}, 16553, 16059, 4577},
    {"resnext50_b128", {.network = "resnext50_32x4d", .batch = 128}, 14726, 13988, 5356},
    {"bert_base_squad_b32",
     {.network = "bert-base", .batch = 32, .length = 384, .squad = true, .eager = true},
     19845.4,
     19071.3,
     19023.5},
};

Json peak(const PeakEntry& entry) {
  const PaperNeed need = measure_need(entry.model);
  const Bytes no_tiers = minimum_without_tiers(entry.model, need);
  Json json{{"model", to_json(entry.model)}, {"need", to_json(need)}};
  json["minimum_without_host"] = no_tiers.count();
  json["paper_mb"] = {
      {"baseline", entry.baseline_mb}, {"dtr", entry.dtr_mb}, {"delta", entry.delta_mb}};
  const bool both = entry.baseline_mb > 0 && entry.delta_mb > 0;
  const Bytes budget =
      share_of(need.unmanaged.peak, both ? entry.delta_mb / entry.baseline_mb : kUsualShare);
  struct Row {
    const char* name;
    const char* policy;
    bool host;
  };
  for (const Row& row : {Row{"dtr", "dtr", false},
                         {"delta-paper", "delta-paper", true},
                         {"delta", "delta", true},
                         {"tide", "tide", true}}) {
    const Bytes least = row.host ? need.minimum : no_tiers;
    PaperRun run{.policy = parse_policy(row.policy),
                 .budget = std::max(budget, align_up(least)),
                 .host_limit = row.host ? 2 * need.unmanaged.peak : 0_B};
    json["at_the_papers_share"][row.name] =
        to_json(run_paper(entry.model, need, run), run, need);
    // The smallest of the budgets tried at which a step takes at most twice as long.
    if (!entry.smallest) continue;
    Json smallest;
    for (int percent = 96; percent >= 2; percent -= 2) {
      run.budget = share_of(need.unmanaged.peak, percent / 100.0);
      if (run.budget < least) break;
      run.give_up = 2;
      const PaperResult result = run_paper(entry.model, need, run);
      if (!result.ran()) break;
      smallest = to_json(result, run, need);
    }
    json["smallest_within_twice_the_time"][row.name] = smallest;
  }
  return json;
}

Experiment peaks() {
  Experiment experiment{"peaks", "Table II and Fig. 3: memory by method", {}};
  for (const PeakEntry& entry : kPeaks) {
    experiment.tasks.push_back({entry.id, [entry] { return peak(entry); }});
  }
  return experiment;
}

// Tables III and IV. Host memory is that of a DGX A100, 2 TB, divided by its eight GPUs.
constexpr Bytes kDeviceMemory = 80 * 1024_MiB;
constexpr Bytes kHostMemory = 256 * 1024_MiB;
constexpr int64_t kSearchSteps = 4;

// The largest number for which `fits` holds, if it holds for all smaller ones. At least 1.
int64_t largest(int64_t from, const std::function<bool(int64_t)>& fits) {
  int64_t low = from, high = from;
  while (fits(high)) low = high, high = high * 3 / 2 + 1;
  while (high - low > std::max<int64_t>(1, low / 256)) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

int64_t baseline_batch(PaperModel model) {
  return largest(8, [&](int64_t batch) {
    model.batch = batch;
    return measure_need(model, false).unmanaged.peak <= kDeviceMemory;
  });
}

Json max_batch(PaperModel model, const std::string& policy) {
  const int64_t baseline = baseline_batch(model);
  model.batch = baseline;
  const PaperNeed at_baseline = measure_need(model, false);
  const double rate = static_cast<double>(baseline) / at_baseline.ms * 1e3;
  Json json{{"baseline_batch", baseline},
            {"baseline_peak", at_baseline.unmanaged.peak.count()},
            {"baseline_per_second", rounded(rate)}};
  if (policy == "none") return json;
  const auto run_at = [&](int64_t batch, int64_t steps) {
    model.batch = batch;
    const PaperNeed need = measure_need(model, false);
    const PaperRun run{.policy = parse_policy(policy),
                       .budget = kDeviceMemory,
                       .host_limit = policy == "dtr" ? 0_B : kHostMemory,
                       .steps = steps};
    const PaperResult result = run_paper(model, need, run);
    Json row = to_json(result, run, need);
    row["batch"] = batch;
    row["times"] = rounded(static_cast<double>(batch) / static_cast<double>(baseline), 3);
    if (result.ran()) {
      row["per_second"] = rounded(static_cast<double>(batch) / result.ms * 1e3);
      row["speed"] = rounded(static_cast<double>(batch) / result.ms * 1e3 / rate);
      row["host_peak"] = result.host_peak.count();
    }
    return row;
  };
  json["curve"] = Json::array();
  for (const double times : {1.1, 1.2, 1.28, 1.5, 1.75, 2.04, 2.25, 2.5, 3.0, 3.5, 4.0, 5.0}) {
    const auto batch = static_cast<int64_t>(times * static_cast<double>(baseline));
    json["curve"].push_back(run_at(batch, 20));
    if (!json["curve"].back().contains("ms")) break;
  }
  const int64_t most = largest(
      baseline, [&](int64_t batch) { return run_at(batch, kSearchSteps).contains("ms"); });
  json["largest"] = run_at(most, 20);
  return json;
}

Experiment max_batches() {
  Experiment experiment{"max_batch", "Tables III and IV: the largest batch in 80 GiB", {}};
  for (const char* network : {"resnet50", "resnet101"}) {
    for (const char* policy : {"none", "dtr", "delta-paper", "delta", "tide"}) {
      experiment.tasks.push_back({fmt::format("{} {}", network, policy),
                                  [=] { return max_batch({.network = network}, policy); }});
    }
  }
  return experiment;
}

// Section 5.4: compares with copies that compute waits for.
Json overlap(const PaperModel& model, const std::string& policy, double saving) {
  const PaperNeed need = measure_need(model);
  Json json{{"model", to_json(model)}, {"need", to_json(need)}};
  for (const bool on : {true, false}) {
    const PaperRun run{.policy = parse_policy(policy),
                       .budget = share_of(need.unmanaged.peak, 1 - saving),
                       .host_limit = 2 * need.unmanaged.peak,
                       .overlap = on};
    json[on ? "on" : "off"] = to_json(run_paper(model, need, run), run, need);
  }
  return json;
}

Experiment overlaps() {
  Experiment experiment{"overlap", "Section 5.4: with and without overlap", {}};
  for (const PaperModelEntry& entry : kCurves) {
    const std::string id = entry.id;
    if (id != "resnet50_b256" && id != "resnet101_b128" && id != "bert_base_512_b32") continue;
    for (const char* policy : {"delta-paper", "delta", "offload-only", "tide"}) {
      for (const int saving : {30, 60}) {
        experiment.tasks.push_back({fmt::format("{} {} {}", id, policy, saving), [=] {
                                      return overlap(entry.model, policy, saving / 100.0);
                                    }});
      }
    }
  }
  return experiment;
}

// Table V: for each forward call whose output is kept for backward, the cost of recomputing its
// outputs and the cost of copying them out and back.
Json costs(const PaperModel& model) {
  SessionOptions options;
  options.device = kPaperDevice;
  options.threads = 1;
  options.policy = "none";
  options.budget = Bytes(int64_t{1} << 50);
  options.event_capacity = 64;
  struct Row {
    int64_t count = 0;
    Nanos again{0}, there_and_back{0}, by_the_paper{0};
  };
  std::map<std::pair<std::string, int64_t>, Row> rows;
  Session session(options);
  const std::unique_ptr<PaperNetwork> network = make_network(model);
  const DeviceProfile profile = device_profile(kPaperDevice);
  const CallListener listener(session, [&](const Recipe& call) {
    if (session.residency().view().phase() != Phase::kForward) return;
    Bytes bytes{0};
    for (const Recipe::Output& output : call.outputs) {
      if (output.storage != nullptr) bytes += align_up(output.bytes);
    }
    if (bytes < 1_MiB ||
        std::any_of(call.inputs.begin(), call.inputs.end(),
                    [](const Recipe::Input& input) { return input.written; })) {
      return;
    }
    Row& row = rows[{call.name(), bytes.count()}];
    ++row.count;
    row.again = session.costs().time(call.cost_key);
    row.there_and_back =
        session.costs().offload_time(bytes) + session.costs().reload_time(bytes);
    const double slower = 0.35;
    row.by_the_paper = Nanos(
        std::llround(static_cast<double>(bytes.count()) / slower *
                     (1 / profile.offload_bandwidth + 1 / profile.reload_bandwidth) * 1e9));
  });
  session.step([&] { network->step(); });
  Json json = Json::array();
  for (const auto& [key, row] : rows) {
    json.push_back({{"operator", key.first},
                    {"bytes", key.second},
                    {"calls", row.count},
                    {"recompute_us", rounded(to_seconds(row.again) * 1e6, 1)},
                    {"swap_us", rounded(to_seconds(row.there_and_back) * 1e6, 1)},
                    {"swap_at_35_percent_us", rounded(to_seconds(row.by_the_paper) * 1e6, 1)}});
  }
  return json;
}

Experiment swap_or_recompute() {
  Experiment experiment{"costs", "Table V: swapping and recomputing the same tensors", {}};
  std::vector<PaperModelEntry> models{{"resnet50_b128", {.network = "resnet50", .batch = 128}}};
  models.insert(models.end(), kCurves.begin(), kCurves.end());
  for (const PaperModelEntry& entry : models) {
    experiment.tasks.push_back({entry.id, [entry] { return costs(entry.model); }});
  }
  return experiment;
}

// Fig. 8: divides one step into equal intervals; for each, the most memory in use, and the
// share of time for which each link was busy.
Json timeline(const PaperModel& model, const std::string& policy, double saving, bool overlap) {
  constexpr size_t kBins = 240;
  const PaperNeed need = measure_need(model);
  PaperRun run{.policy = parse_policy(policy),
               .budget = share_of(need.unmanaged.peak, 1 - saving),
               .host_limit = 2 * need.unmanaged.peak,
               .overlap = overlap,
               .keep_events = true};
  if (policy == "none") run.budget = need.unmanaged.peak;
  const PaperResult result = run_paper(model, need, run);
  Json json = to_json(result, run, need);
  if (!result.ran()) return json;
  Nanos begin{INT64_MAX}, end{0};
  for (const EventRecord& event : result.events) {
    if (event.end <= Nanos(0)) continue;
    begin = std::min(begin, event.start);
    end = std::max(end, event.end);
  }
  const double width = static_cast<double>((end - begin).count()) / kBins;
  const auto bin = [&](Nanos at) {
    const auto i = static_cast<int64_t>(static_cast<double>((at - begin).count()) / width);
    return static_cast<size_t>(std::clamp<int64_t>(i, 0, kBins - 1));
  };
  std::vector<double> used(kBins), out(kBins), in(kBins), again(kBins);
  const auto busy = [&](std::vector<double>& of, const EventRecord& event) {
    for (size_t i = bin(event.start); i <= bin(event.end); ++i) {
      const double left = static_cast<double>(begin.count()) + width * static_cast<double>(i);
      const double shared = std::min(left + width, static_cast<double>(event.end.count())) -
                            std::max(left, static_cast<double>(event.start.count()));
      of[i] += std::max(0.0, shared) / width;
    }
  };
  int64_t offloads = 0, reloads = 0, evictions = 0, recomputes = 0;
  for (const EventRecord& event : result.events) {
    const bool timed = event.end > Nanos(0);
    switch (event.kind) {
      case EventKind::kRecompute:
        ++recomputes;
        if (timed) busy(again, event);
        [[fallthrough]];
      case EventKind::kOperator:
        if (timed) {
          double& most = used[bin(event.start)];
          most = std::max(most, static_cast<double>(event.used.count()));
        }
        break;
      case EventKind::kOffload:
      case EventKind::kCopyOut:
        ++offloads;
        if (timed) busy(out, event);
        break;
      case EventKind::kReload:
      case EventKind::kPrefetch:
        ++reloads;
        if (timed) busy(in, event);
        break;
      case EventKind::kEvict: ++evictions; break;
      default: break;
    }
  }
  for (size_t i = 1; i < kBins; ++i) {
    if (used[i] == 0) used[i] = used[i - 1];
  }
  json["offloads"] = offloads;
  json["reloads"] = reloads;
  json["evictions"] = evictions;
  json["recomputes"] = recomputes;
  for (const auto& [name, values] : {std::pair{"used_mib", &used},
                                     {"offloading", &out},
                                     {"reloading", &in},
                                     {"recomputing", &again}}) {
    for (const double value : *values) {
      json[name].push_back(std::string(name) == "used_mib" ? rounded(value / (1 << 20), 0)
                                                           : rounded(std::min(1.0, value), 2));
    }
  }
  return json;
}

Experiment timelines() {
  Experiment experiment{
      "timelines", "Fig. 4, 5 and 8: one step of ResNet-50, batch 256, 60 % saved", {}};
  for (const char* policy :
       {"none", "delta", "delta:lru", "delta:greedy", "delta-paper", "msps", "tide"}) {
    experiment.tasks.push_back(
        {policy, [=] { return timeline(kCurves[0].model, policy, 0.6, true); }});
  }
  for (const char* policy : {"delta-paper", "delta"}) {
    experiment.tasks.push_back({std::string(policy) + " without overlap", [=] {
                                  return timeline(kCurves[0].model, policy, 0.6, false);
                                }});
  }
  return experiment;
}

// Each of delta's repairs of the paper's method: undone in delta, and made in delta-paper.
std::vector<std::string> ablated_policies() {
  std::vector<std::string> names{"delta"};
  for (const DeltaRepair& repair : delta_repairs()) {
    names.push_back("delta/no-" + std::string(repair.name));
  }
  names.emplace_back("delta-paper");
  for (const DeltaRepair& repair : delta_repairs()) {
    const bool on = delta_as_printed().*repair.on;
    names.push_back("delta-paper/" + std::string(on ? "no-" : "") + std::string(repair.name));
  }
  return names;
}

Json at_savings(const PaperModel& model, const std::vector<int>& savings, PaperRun run) {
  const PaperNeed need = measure_need(model, false);
  Json json{{"need", to_json(need)}, {"points", Json::array()}};
  for (const int saving : savings) {
    run.budget = share_of(need.unmanaged.peak, 1 - saving / 100.0);
    run.host_limit = 2 * need.unmanaged.peak;
    json["points"].push_back(to_json(run_paper(model, need, run), run, need));
  }
  return json;
}

std::vector<Experiment> ablations() {
  Experiment hard{"ablation", "DELTA's repairs one by one: 50 % and 60 % saved", {}};
  Experiment soft{
      "soft_budget",
      "DELTA as printed in memory that is not limited: releases begin at the budget",
      {}};
  hard.tasks.push_back({"repairs", [] {
                          Json json;
                          for (const DeltaRepair& repair : delta_repairs()) {
                            json[repair.name] = repair.about;
                          }
                          return json;
                        }});
  for (const PaperModelEntry& entry : {kCurves[0], kCurves[2]}) {
    const std::string id = entry.id;
    const auto add = [&](Experiment& to, const std::string& name, std::vector<int> savings,
                         const PaperRun& run) {
      to.tasks.push_back(
          {id + " " + name, [=] { return at_savings(entry.model, savings, run); }});
    };
    for (const std::string& policy : ablated_policies()) {
      add(hard, policy, {50, 60}, {.policy = parse_policy(policy)});
    }
    // Not differences from the paper: what Algorithm 1's early start, Algorithm 4 and
    // compaction do for delta.
    add(hard, "delta, early start off", {50, 60}, {.policy = {"delta"}, .early_start = 0});
    add(hard, "delta, prefetch off", {50, 60}, {.policy = {"delta"}, .prefetch = 0});
    add(hard, "delta, early start and prefetch off", {50, 60},
        {.policy = {"delta"}, .early_start = 0, .prefetch = 0});
    add(hard, "delta, compaction off", {50, 60}, {.policy = {"delta"}, .compact = false});
    add(hard, "dtr", {50, 60}, {.policy = {"dtr"}});
    add(hard, "tide", {50, 60}, {.policy = {"tide"}});
    for (const char* policy : {"delta-paper", "delta-paper/no-prices", "delta-paper/reload",
                               "delta", "delta/no-backward"}) {
      add(soft, policy, {20, 30, 40, 50, 60, 70, 80, 90},
          {.policy = parse_policy(policy), .soft = true});
    }
  }
  return {hard, soft};
}

// BERT against attention as frameworks run it. The saving is relative to the latter's peak.
Json against_eager(const std::string& policy) {
  PaperModel model = kCurves[2].model;
  const PaperNeed need = measure_need(model);
  model.eager = true;
  const PaperNeed eager = measure_need(model);
  model.eager = false;
  Json json{{"need", to_json(need)}, {"eager", to_json(eager)}, {"points", Json::array()}};
  for (const int saving : {40, 50, 60, 70, 80}) {
    const Bytes budget = share_of(eager.unmanaged.peak, 1 - saving / 100.0);
    const PaperRun run{.policy = parse_policy(policy),
                       .budget = std::min(budget, need.unmanaged.peak),
                       .host_limit = 2 * need.unmanaged.peak};
    Json row = to_json(run_paper(model, need, run), run, need);
    row["saving_against_eager"] = saving;
    if (row.contains("ms")) {
      row["overhead_against_eager"] = rounded(row["ms"].get<double>() / eager.ms - 1, 5);
    }
    json["points"].push_back(row);
  }
  return json;
}

Experiment eager() {
  Experiment experiment{"bert_against_eager",
                        "BERT-base, 512 tokens, batch 32: saving against eager attention",
                        {}};
  for (const char* policy : {"tide", "delta", "delta-paper", "dtr"}) {
    experiment.tasks.push_back({policy, [=] { return against_eager(policy); }});
  }
  return experiment;
}

int run(int argc, char** argv) {
  CLI::App app("The experiments of the DELTA paper on the simulator", "paper_experiments");
  std::string out = "bench/results/papers", only, row;
  int jobs = 2;
  bool force = false;
  app.add_option("--out", out, "Folder of the JSON files")->capture_default_str();
  app.add_option("--only", only, "Only experiments whose file name begins with this");
  app.add_option("--row", row, "Only measurements whose key contains this");
  app.add_option("--jobs", jobs, "How many at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_flag("--force", force,
               "Repeat measurements already made by this program at this commit. What other "
               "commits measured is kept until it is measured again; each row says so");
  CLI11_PARSE(app, argc, argv);

  std::vector<Experiment> experiments = curves();
  for (Experiment& experiment :
       std::vector<Experiment>{parameters(), peaks(), max_batches(), overlaps(),
                               swap_or_recompute(), timelines(), eager()}) {
    experiments.push_back(std::move(experiment));
  }
  for (Experiment& experiment : ablations()) experiments.push_back(std::move(experiment));
  std::string files;
  for (const Experiment& experiment : experiments) files += " " + experiment.file;
  std::erase_if(experiments, [&](const Experiment& e) { return !e.file.starts_with(only); });
  if (experiments.empty()) {
    throw UsageError("--only: no experiment begins with '" + only + "'; there are" + files);
  }
  bool found = false;
  for (const Experiment& experiment : experiments) {
    for (const Task& task : experiment.tasks) found |= task.key.find(row) != std::string::npos;
  }
  if (!found) throw UsageError("--row: no measurement's key contains '" + row + "'");

  Results results(out, kPaperDevice, force);
  struct Item {
    const Experiment* experiment;
    Task task;
  };
  std::vector<Item> items;
  for (const Experiment& experiment : experiments) {
    for (const Task& task : results.open(experiment)) {
      if (task.key.find(row) != std::string::npos) items.push_back({&experiment, task});
    }
  }
  fmt::print("{} measurements to make\n", items.size());
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (size_t i = next++; i < items.size() && !failed; i = next++) {
      const Item& item = items[i];
      const std::string name = item.experiment->file + " " + item.task.key;
      try {
        results.add(*item.experiment, item.task.key, item.task.run());
        fmt::print("{}/{} {}\n", ++done, items.size(), name);
        std::fflush(stdout);
      } catch (const std::exception& error) {
        failed = true;
        fmt::print(stderr, "paper_experiments: {}: {}\n", name, error.what());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  return tidemark::run_main("paper_experiments", tidemark::run, argc, argv, 2);
}
