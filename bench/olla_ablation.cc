// Compares OLLA's programs, with each reduction switched off in turn, with our own planner.
//
// olla_report.py makes a table of the output.
//
//   olla_ablation [--deadline SECONDS] [--output FILE.json] [INSTANCE...]
//
// An INSTANCE is a file in data/instances/order, named by the part before _train. The edges
// that OLLA's authors added for early updates are removed first, so that this reduction can be
// switched too. Each program is solved once, on one thread, with the solver that
// require_solver() finds, within the deadline. "published" is the paper's method without
// anything of ours.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/first_line.h"
#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/papers/olla/olla.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/validator.h"

namespace tidemark::planner {
namespace {

using Json = nlohmann::ordered_json;
using olla::Options;
using olla::Report;
using olla::Timesteps;

struct Variant {
  const char* name;
  std::function<void(Options&)> set;
};

const Variant kLifetimes[] = {
    {"published", [](Options&) {}},
    {"without spans", [](Options& o) { o.spans = false; }},
    {"without early updates", [](Options& o) { o.early_updates = false; }},
    {"as many timesteps as operators", [](Options& o) { o.timesteps = Timesteps::kOperators; }},
    {"one operator per timestep", [](Options& o) { o.timesteps = Timesteps::kOnePerStep; }},
    {"with our start and bound", [](Options& o) { o.start = o.bound = true; }},
};

const Variant kLocations[] = {
    {"published", [](Options&) {}},
    {"without precedence", [](Options& o) { o.precedence = false; }},
    {"without pyramid", [](Options& o) { o.pyramid = false; }},
    {"with our start and bound", [](Options& o) { o.start = o.bound = true; }},
};

const Variant kJoint[] = {
    {"without splitting", [](Options& o) { o.splitting = false; }},
};

struct Given {
  Problem problem;
  double authors_peak;  // of the authors' program, solved by CBC
};

Given read_instance(const std::string& name) {
  const std::string file = std::string(TIDEMARK_INSTANCES "/order/") + name + "_train.json.gz";
  nlohmann::json json = nlohmann::json::parse(read_text_file(file));
  nlohmann::json edges = nlohmann::json::array();
  for (nlohmann::json& edge : json["edges"]) {
    const bool added = edge["name"].get<std::string>().ends_with("_forced_early");
    if (!added) edges.push_back(std::move(edge));
  }
  json["edges"] = std::move(edges);
  return {parse_order_graphs(json.dump(), file, Parameters::kResident)[0].problem,
          json.value("olla_cbc_peak", 0.0)};
}

void require_valid(const std::vector<std::string>& violations) {
  TIDEMARK_CHECK(violations.empty(), "a plan failed validation: " + violations[0]);
}

class Ablation {
 public:
  explicit Ablation(double deadline) : deadline_(deadline) {}

  void run(const std::string& name) {
    instance_ = name;
    const Given given = read_instance(name);
    const Problem& problem = given.problem;
    ours(problem, given.authors_peak);
    std::vector<OpId> order;
    for (const Variant& variant : kLifetimes) {
      const olla::OrderResult result = olla::order(problem, options(variant));
      if (result.order && order.empty()) order = result.order->order;
      add("(14) order", variant.name, result.report,
          result.order ? result.order->load : Bytes(0), load_bound(problem));
    }
    if (order.empty()) order = lescea(problem);
    std::vector<Buffer> buffers;
    for (const Placement& p : lifetimes(problem, order)) {
      buffers.push_back({p.begin, p.end, p.size});
    }
    for (const Variant& variant : kLocations) {
      const olla::LayoutResult result = olla::layout(buffers, options(variant));
      if (result.layout) {
        require_valid(
            layout_violations(buffers, result.layout->offsets, result.layout->height));
      }
      add("(15) places", variant.name, result.report,
          result.layout ? result.layout->height : Bytes(0), max_load(buffers));
    }
    for (const Variant& variant : kJoint) {
      const olla::PlanResult result = olla::plan(problem, options(variant));
      if (result.plan) require_valid(violations(problem, *result.plan));
      add("(9) jointly", variant.name, result.lifetimes,
          result.plan ? result.plan->peak : Bytes(0), load_bound(problem));
    }
  }

  const Json& rows() const { return rows_; }

 private:
  Options options(const Variant& variant) const {
    Options options = olla::published();
    options.limits.seconds = deadline_;
    variant.set(options);
    return options;
  }

  // Program order, LESCEA and the default planner, within the same deadline.
  void ours(const Problem& problem, double authors_peak) {
    PlannerOptions options;
    options.limits.seconds = deadline_;
    const Plan plan = plan_step(problem, options);
    require_valid(violations(problem, plan));
    rows_.push_back({{"instance", instance_},
                     {"program", "ours"},
                     {"variant", plan.method},
                     {"operators", problem.op_count()},
                     {"program_order_load", peak_load(problem, program_order(problem)).count()},
                     {"lescea_load", peak_load(problem, lescea(problem)).count()},
                     {"seconds", plan.seconds},
                     {"load", plan.load.count()},
                     {"peak", plan.peak.count()},
                     {"bound", plan.bound.count()},
                     {"authors_load", authors_peak}});
    fmt::print("{}: {} operators; ours: load {}, peak {}, bound {}, {:.2f} s\n", instance_,
               problem.op_count(), plan.load.count(), plan.peak.count(), plan.bound.count(),
               plan.seconds);
  }

  // `result`: the peak once operators run one after the other. `least`: a lower bound.
  void add(const char* program, const char* variant, const Report& report, Bytes result,
           Bytes least) {
    const bool found = result > Bytes(0);
    rows_.push_back({{"instance", instance_},
                     {"program", program},
                     {"variant", variant},
                     {"variables", report.variables},
                     {"integers", report.integers},
                     {"rows", report.rows},
                     {"seconds", report.seconds},
                     {"status", to_string(report.status)},
                     {"program_peak", report.peak.count()},
                     {"program_bound", report.bound.count()},
                     {"program_gap", found ? Json(report.gap()) : Json()},
                     {"result", found ? Json(result.count()) : Json()},
                     {"least", least.count()},
                     {"solver", report.solver},
                     {"note", report.note}});
    fmt::print("  {:<12}{:<32}{:>8} variables{:>9} rows{:>8.2f} s  {:<11}", program, variant,
               report.variables, report.rows, report.seconds, to_string(report.status));
    if (found) {
      fmt::print(
          "{:>12}, {:.3f} % above the minimum", result.count(),
          100 * (static_cast<double>(result.count()) / static_cast<double>(least.count()) - 1));
    }
    fmt::print(" {}\n", report.note);
    std::fflush(stdout);
  }

  double deadline_;
  std::string instance_;
  Json rows_ = Json::array();
};

int run(int argc, char** argv) {
  CLI::App app{"OLLA's programs with each of its reductions switched off, beside our planner."};
  double deadline = 30;
  std::string output;
  std::vector<std::string> instances = {"alexnet_1", "squeezenet_1", "transformer_1",
                                        "resnet18_1"};
  app.add_option("--deadline", deadline, "seconds for each program")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--output", output, "also write JSON to this file");
  app.add_option("INSTANCE", instances)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Solver solver = require_solver();
  const std::string commit =
      output.empty() ? "" : commit_of(std::filesystem::absolute(output).parent_path());
  Ablation ablation(deadline);
  for (const std::string& instance : instances) ablation.run(instance);
  if (!output.empty()) {
    const Json report{
        {"commit", commit},
        {"device", "one thread of " + first_line_of("sed -n 's/^model name.*: //p' "
                                                    "/proc/cpuinfo")},
        {"solver", to_string(solver.kind)},
        {"solver_version",
         first_line_of("'" + solver.path + "' --version 2> /dev/null < /dev/null")},
        {"deadline_s", deadline},
        {"rows", ablation.rows()}};
    write_text_file(output, report.dump(1) + "\n");
  }
  return 0;
}

}  // namespace
}  // namespace tidemark::planner

int main(int argc, char** argv) {
  return tidemark::run_main("olla_ablation", tidemark::planner::run, argc, argv, 1);
}
