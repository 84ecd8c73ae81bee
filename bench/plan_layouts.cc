// Lays out many buffers, and small problems that are hard: how far above the load, after what
// time. Writes each part into the JSON file when it is done; parts that are not named stay.
//
//   plan_layouts FILE.json [PART...]
//
// Made-up training steps (training_buffers.h): seeds 1 to 14 were looked at while the methods
// were made, others are held back. Variants of MiniMalloc's problems (layout_variants.h): up to
// seed 36 to tune on, from 1001 on held back. Deadlines are of wall clock, seconds of this
// thread's CPU time: another program on the machine stretches the one, not the other.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/first_line.h"
#include "bench/layout_variants.h"
#include "bench/run_main.h"
#include "bench/training_buffers.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"
#include "runtime/planner/io/layout_csv.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/validator.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;
using planner::Buffer;
using planner::Layout;
using planner::LayoutOptions;

// MiniMalloc's problems, and the bytes in which each fits.
constexpr const char* kProblems[] = {"A", "C", "F", "H", "K"};
constexpr Bytes kCapacity(1 << 20);
constexpr int64_t kMaxNodes = 500'000;
constexpr double kNoDeadline = 1e6;

struct Part {
  const char* name;
  const char* about;
  uint64_t first_seed, last_seed;
  // Of training steps; 0 buffers: variants.
  size_t buffers = 0;
  std::vector<double> deadlines{};
};
const std::vector<Part> kParts{
    {"20000", "training steps, held back", 21, 26, 20'000, {20}},
    {"100000", "training steps, held back", 21, 22, 100'000, {60}},
    {"1000000", "training steps, held back", 21, 22, 1'000'000, {15, 60}},
    {"varied", "MiniMalloc's problems varied, to tune on", 1, 36},
    {"varied, held back", "MiniMalloc's problems varied, held back", 1001, 1012},
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void require_valid(const std::vector<Buffer>& buffers, const planner::Offsets& offsets,
                   Bytes height, const std::string& what) {
  if (!layout_violations(buffers, offsets, height).empty()) {
    throw Error(what + ": the layout is not valid");
  }
}

Layout lay_out(const std::vector<Buffer>& buffers, const LayoutOptions& options,
               const std::string& what, double& seconds) {
  const double begin = cpu_seconds();
  Layout layout = plan_layout(buffers, options);
  seconds = cpu_seconds() - begin;
  require_valid(buffers, layout.offsets, layout.height, what);
  return layout;
}

Json measure_steps(const Part& part) {
  Json rows = Json::array();
  fmt::print(" seed  buffers  deadline  best fit %  above load %    CPU s\n");
  for (uint64_t seed = part.first_seed; seed <= part.last_seed; ++seed) {
    const std::vector<Buffer> buffers = bench::TrainingBuffers::make(seed, part.buffers);
    const double begin = cpu_seconds();
    const planner::Offsets online = planner::best_fit_online(buffers);
    const double online_seconds = cpu_seconds() - begin;
    for (const double deadline : part.deadlines) {
      LayoutOptions options;
      options.limits.seconds = deadline;
      double seconds = 0;
      const Layout layout = lay_out(buffers, options, fmt::format("seed {}", seed), seconds);
      const auto above = [&](Bytes top) {
        return static_cast<double>((top - layout.bound).count()) /
               static_cast<double>(layout.bound.count());
      };
      const double best_fit = above(height(buffers, online));
      fmt::print("{:>5}{:>9}{:>10}{:>12.3f}{:>14.4f}{:>9.1f}  {}\n", seed, buffers.size(),
                 deadline, 100 * best_fit, 100 * above(layout.height), seconds, layout.method);
      rows.push_back({{"seed", seed},
                      {"buffers", buffers.size()},
                      {"deadline_s", deadline},
                      {"best_fit_above_load", best_fit},
                      {"best_fit_cpu_seconds", online_seconds},
                      {"above_load", above(layout.height)},
                      {"cpu_seconds", seconds},
                      {"method", layout.method}});
    }
  }
  return rows;
}

Json measure_variants(const Part& part) {
  Json rows = Json::array();
  LayoutOptions options;
  options.target = kCapacity;
  options.limits.seconds = kNoDeadline;
  options.limits.nodes = kMaxNodes;
  for (const char* const problem : kProblems) {
    const std::string file =
        fmt::format("{}/layout/minimalloc-{}.csv", TIDEMARK_INSTANCES, problem);
    const std::vector<Buffer> original =
        planner::parse_layout_csv(read_text_file(file), file).buffers;
    double seconds = 0;
    const Layout whole = lay_out(original, options, problem, seconds);
    if (whole.height > kCapacity) throw Error(std::string(problem) + ": not laid out");
    for (uint64_t seed = part.first_seed; seed <= part.last_seed; ++seed) {
      const bench::LayoutVariant variant(original, seed);
      const std::vector<Buffer> buffers = variant.buffers();
      const std::string what = fmt::format("{}, seed {}", problem, seed);
      const planner::Offsets cut = variant.cut(whole.offsets);
      const Bytes top = height(buffers, cut);
      require_valid(buffers, cut, top, what + ", as it is made");
      if (top > kCapacity) throw Error(what + ": made too high");
      const Layout layout = lay_out(buffers, options, what, seconds);
      const bool solved = layout.height <= kCapacity;
      if (!solved || seconds > 1) {
        fmt::print("{}, {}: {:.1f} s{}\n", what, variant.change(), seconds,
                   solved ? "" : ", not solved");
        std::fflush(stdout);
      }
      rows.push_back({{"problem", problem},
                      {"seed", seed},
                      {"change", variant.change()},
                      {"buffers", buffers.size()},
                      {"solved", solved},
                      {"nodes", layout.nodes},
                      {"cpu_seconds", seconds},
                      {"height", layout.height.count()}});
    }
  }
  return rows;
}

// One line for each row.
std::string to_text(const Json& parts) {
  std::string text = "{";
  for (const auto& [name, part] : parts.items()) {
    text += fmt::format("{}\n {}: {{", text.size() > 1 ? "," : "", Json(name).dump());
    for (const auto& [key, value] : part.items()) {
      if (key != "rows") text += fmt::format("\n  {}: {},", Json(key).dump(), value.dump());
    }
    text += "\n  \"rows\": [";
    const Json& rows = part.at("rows");
    for (size_t k = 0; k < rows.size(); ++k) {
      text += fmt::format("{}\n   {}", k > 0 ? "," : "", rows[k].dump());
    }
    text += "\n  ]\n }";
  }
  return text + "\n}\n";
}

int run(int argc, char** argv) {
  const std::string file = argv[1], folder = std::filesystem::absolute(file).parent_path();
  const std::vector<std::string> wanted(argv + 2, argv + argc);
  for (const std::string& name : wanted) {
    if (std::none_of(kParts.begin(), kParts.end(),
                     [&](const Part& part) { return part.name == name; })) {
      throw UsageError("no part '" + name + "'");
    }
  }
  Json all = Json::object();
  if (std::ifstream before(file); before) all = Json::parse(before);
  write_text_file(file, to_text(all));  // rather than fail after the measurements
  for (const Part& part : kParts) {
    const bool skip =
        !wanted.empty() && std::find(wanted.begin(), wanted.end(), part.name) == wanted.end();
    if (skip) continue;
    fmt::print("{}\n", part.about);
    Json result{{"about", part.about},
                {"commit", commit_of(folder)},
                {"date", first_line_of("date -u +%F")},
                {"system", first_line_of("uname -sr")},
                {"device", "one thread of " + first_line_of("sed -n 's/^model name.*: //p' "
                                                            "/proc/cpuinfo")}};
    if (part.buffers == 0) {
      result["capacity"] = kCapacity.count();
      result["max_nodes"] = kMaxNodes;
    }
    result["rows"] = part.buffers > 0 ? measure_steps(part) : measure_variants(part);
    all[part.name] = std::move(result);
    write_text_file(file, to_text(all));
  }
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  if (const auto code = tidemark::explain_usage(
          argc, argv, argc < 2 || argv[1][0] == '-',
          "plan_layouts FILE.json [PART...]\n\nLays out made-up training steps of 20000, "
          "100000 "
          "and 1000000 buffers, and MiniMalloc's\nproblems varied ('varied' and 'varied, held "
          "back'). PART: only these; others in FILE.json stay.")) {
    return *code;
  }
  return tidemark::run_main("plan_layouts", tidemark::run, argc, argv, 1);
}
