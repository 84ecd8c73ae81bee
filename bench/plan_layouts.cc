// Lays out made-up training steps of many buffers: how far above the load, and in what time.
//
//   plan_layouts SECONDS COUNT SEEDS [FILE.json]
//
// Seeds 1 to 14 were looked at while the methods were made; others are held back. Seconds are
// of wall clock, those used of this thread's CPU time: another program on the machine stretches
// the one, not the other.
#include <spdlog/fmt/fmt.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/first_line.h"
#include "bench/run_main.h"
#include "bench/training_buffers.h"
#include "runtime/core/errors.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/validator.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;
using planner::Buffer;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Json measure(uint64_t seed, size_t count, double seconds) {
  const std::vector<Buffer> buffers = bench::TrainingBuffers::make(seed, count);
  const double begin = cpu_seconds();
  planner::LayoutOptions options;
  options.limits.seconds = seconds;
  const planner::Layout layout = plan_layout(buffers, options);
  const double used = cpu_seconds() - begin;
  if (!layout_violations(buffers, layout.offsets, layout.height).empty()) {
    throw Error("seed " + std::to_string(seed) + ": the layout is not valid");
  }
  const auto above = [&](Bytes top) {
    return static_cast<double>((top - layout.bound).count()) /
           static_cast<double>(layout.bound.count());
  };
  const double online = above(height(buffers, planner::best_fit_online(buffers)));
  fmt::print("{:>5}{:>9}{:>12.3f}{:>12.4f}{:>9.1f}  {}\n", seed, buffers.size(), 100 * online,
             100 * above(layout.height), used, layout.method);
  return {{"seed", seed},
          {"buffers", buffers.size()},
          {"best_fit_above_load", online},
          {"above_load", above(layout.height)},
          {"cpu_seconds", used},
          {"method", layout.method}};
}

int run(int argc, char** argv) {
  const double seconds = std::stod(argv[1]);
  const size_t count = std::stoul(argv[2]);
  const std::string seeds = argv[3];
  const size_t dash = seeds.find('-');
  const uint64_t first = std::stoul(seeds);
  const uint64_t last = dash == std::string::npos ? first : std::stoul(seeds.substr(dash + 1));
  fmt::print(" seed  buffers  best fit %  above load %  CPU s\n");
  Json rows = Json::array();
  for (uint64_t seed = first; seed <= last; ++seed) {
    rows.push_back(measure(seed, count, seconds));
  }
  if (argc > 4) {
    const std::string folder = std::filesystem::absolute(argv[4]).parent_path();
    const Json all{
        {"commit", commit_of(folder)}, {"deadline_s", seconds}, {"rows", std::move(rows)}};
    std::ofstream(argv[4]) << all.dump(1) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  if (const auto code = tidemark::explain_usage(
          argc, argv, argc < 4 || argc > 5,
          "plan_layouts SECONDS COUNT SEED[-SEED] [FILE.json]\n\nLays out made-up training "
          "steps of COUNT buffers, each for at most so many seconds.")) {
    return *code;
  }
  return tidemark::run_main("plan_layouts", tidemark::run, argc, argv, 1);
}
