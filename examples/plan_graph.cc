// Plans memory from a file, and says how good the plan is. `plan_graph --help` explains.
//
//   $ plan_graph --layout problem.csv --output solved.csv --svg solved.svg
//   $ plan_graph --order step.json.gz --output order.json
//
// --layout takes buffers with lifetimes (MiniMalloc's CSV) and gives each an offset; --order
// takes a training step as a graph and orders its operators. The formats are described in
// runtime/planner/io/.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/io/layout_csv.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/io/svg.h"
#include "runtime/planner/io/text_file.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/layout.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/validator.h"

namespace tidemark::planner {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kBadInput = 2, kDoesNotFit = 3 };

// The slower heuristics are compared up to here.
constexpr size_t kMaxBuffersToCompare = 20'000;

struct Flags {
  std::string layout, order, output, svg;
  int64_t capacity = 0;
  bool resident = false;
  Limits limits;
};

void print_header(const std::string& what) {
  fmt::print("{:<28} {:>16} {:>16} {:>9} {:>9}\n", what, "peak", "bound", "gap", "seconds");
}

void print_row(const std::string& method, Bytes peak, Bytes bound, double seconds) {
  const double gap = bound > Bytes(0) ? 100.0 * static_cast<double>((peak - bound).count()) /
                                            static_cast<double>(bound.count())
                                      : 0;
  fmt::print("{:<28} {:>16} {:>16} {:>8.3f}% {:>9.3f}\n", method, peak.count(), bound.count(),
             gap, seconds);
}

// A plan that is not valid is an error of ours, never an answer.
void require_valid(const std::vector<std::string>& violations) {
  for (const std::string& violation : violations) {
    fmt::print(stderr, "plan_graph: the plan is not valid: {}\n", violation);
  }
  TIDEMARK_CHECK(violations.empty(), "a plan failed validation");
}

int run_layout(const Flags& flags) {
  const LayoutInstance instance = parse_layout_csv(read_text(flags.layout), flags.layout);
  LayoutOptions options;
  options.limits = flags.limits;
  options.target = Bytes(flags.capacity);
  const Stopwatch watch(0);
  const Layout layout = plan_layout(instance.buffers, options);
  const double seconds = watch.seconds();
  require_valid(layout_violations(instance.buffers, layout.offsets, layout.height));

  fmt::print("{}: {} buffers, max load {}\n", flags.layout, instance.buffers.size(),
             format_bytes(max_load(instance.buffers)));
  print_header("method");
  const auto compare = [&](const char* name, const std::function<Offsets()>& place) {
    const Stopwatch each(0);
    const Offsets offsets = place();
    print_row(name, height(instance.buffers, offsets), layout.bound, each.seconds());
  };
  const std::vector<Buffer>& buffers = instance.buffers;
  compare("best fit", [&] { return best_fit_online(buffers); });
  if (buffers.size() <= kMaxBuffersToCompare) {
    compare("greedy by size", [&] { return first_fit(buffers, FitOrder::kSize); });
    compare("greedy by area", [&] { return first_fit(buffers, FitOrder::kArea); });
    compare("LLFB", [&] { return lowest_longest(buffers); });
  }
  print_row("plan: " + layout.method, layout.height, layout.bound, seconds);

  if (!flags.svg.empty()) {
    write_text(flags.svg, draw_layout(buffers, layout.offsets,
                                      {flags.layout + ": " + format_bytes(layout.height),
                                       instance.ids, layout.bound}));
  }
  if (flags.capacity > 0 && layout.height > Bytes(flags.capacity)) {
    const bool proven = layout.bound > Bytes(flags.capacity);
    fmt::print(stderr, "plan_graph: does not fit in {} bytes{}\n", flags.capacity,
               proven ? ", in no layout" : " as far as was searched");
    return kDoesNotFit;
  }
  if (!flags.output.empty()) {
    write_text(flags.output, format_layout_csv(instance, layout.offsets));
  }
  return kDone;
}

nlohmann::json plan_order_of(const Flags& flags, const OrderInstance& instance) {
  const Problem& problem = instance.problem;
  const Stopwatch watch(0);
  OrderOptions options;
  options.limits = flags.limits;
  const Order order = plan_order(problem, options);
  const double seconds = watch.seconds();

  // Laid out as well, so that the validator sees all of it.
  Layout layout;
  LayoutOptions layout_options;
  layout_options.limits = flags.limits;
  Plan plan = assemble(problem, order.order, false, [&](const std::vector<Buffer>& buffers) {
    layout = plan_layout(buffers, layout_options);
    return layout.offsets;
  });
  plan.bound = order.bound;
  const double layout_seconds = watch.seconds() - seconds;
  require_valid(violations(problem, plan));
  TIDEMARK_CHECK(plan.load == order.load, "the order's load is not what its lifetimes give");

  const Bytes extra = instance.extra, bound = order.bound + extra;
  fmt::print("{}: {} operators, one at a time{}\n",
             instance.name.empty() ? flags.order : instance.name, problem.op_count(),
             flags.resident ? ", parameters resident throughout" : "");
  print_header("method");
  for (const auto& [name, list] : {std::pair("program order", program_order(problem)),
                                   std::pair("LESCEA", lescea(problem))}) {
    print_row(name, peak_load(problem, list) + extra, bound, 0);
  }
  print_row("plan: " + order.method, order.load + extra, bound, seconds);
  print_row("with offsets: " + layout.method, plan.peak + extra, bound, layout_seconds);

  if (!flags.svg.empty()) {
    const Blocks blocks = to_blocks(plan.placements, {});
    std::vector<std::string> names;
    for (const Placement& p : plan.placements) {
      names.push_back(p.storage != kNone ? problem.storages[p.storage].name
                                         : problem.operators[p.workspace_of].name);
    }
    write_text(flags.svg,
               draw_layout(blocks.buffers, layout.offsets,
                           {flags.order + ": " + format_bytes(plan.peak), names, order.bound}));
  }
  return {{"name", instance.name},
          {"order", node_order(instance, order.order)},
          {"peak", (order.load + extra).count()},
          {"bound", bound.count()},
          {"seconds", seconds},
          {"method", order.method}};
}

int run_order(const Flags& flags) {
  const auto instances =
      parse_order_graphs(read_text(flags.order), flags.order,
                         flags.resident ? Parameters::kResident : Parameters::kAsNodes);
  nlohmann::json plans = nlohmann::json::array();
  for (const OrderInstance& instance : instances) {
    plans.push_back(plan_order_of(flags, instance));
  }
  if (!flags.output.empty()) {
    const nlohmann::json& result = plans.size() == 1 ? plans[0] : plans;
    write_text(flags.output, result.dump(1) + "\n");
  }
  return kDone;
}

int run(int argc, char** argv) {
  CLI::App app{"Plans memory: offsets for buffers, or an order for operators."};
  Flags flags;
  auto* layout = app.add_option("--layout", flags.layout,
                                "CSV of buffers: id,lower,upper,size; lower <= time < upper");
  auto* order =
      app.add_option("--order", flags.order,
                     "JSON graph of a training step, or several; may be gzipped (.gz)");
  layout->excludes(order);
  app.add_option("--capacity", flags.capacity,
                 "stop at a layout of at most so many bytes; exit code 3 if none is found")
      ->check(CLI::PositiveNumber)
      ->needs(layout);
  app.add_flag("--resident", flags.resident,
               "parameters stay from the first operator to the last, instead of from their "
               "node to their sink wherever those are put")
      ->needs(order);
  app.add_option("--output", flags.output,
                 "write the plan: CSV with offsets, or JSON with order, peak, bound, seconds");
  app.add_option("--svg", flags.svg, "draw offsets over time");
  app.add_option("--deadline", flags.limits.seconds, "seconds to search for at most")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--nodes", flags.limits.nodes,
                 "steps of search at most; unlike the deadline the same on every machine")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", flags.limits.seed, "of the choices that are free")
      ->capture_default_str();
  app.footer(
      "Exit codes: 0 planned, 1 failed, 2 bad flags or files, 3 does not fit in --capacity.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kBadInput;
  }
  if (flags.layout.empty() && flags.order.empty()) {
    fmt::print(stderr, "plan_graph: give --layout FILE or --order FILE; see --help\n");
    return kBadInput;
  }
  return flags.layout.empty() ? run_order(flags) : run_layout(flags);
}

}  // namespace
}  // namespace tidemark::planner

int main(int argc, char** argv) {
  using namespace tidemark;
  try {
    return planner::run(argc, argv);
  } catch (const DataError& error) {
    fmt::print(stderr, "plan_graph: {}\n", error.what());
    return planner::kBadInput;
  } catch (const UsageError& error) {
    fmt::print(stderr, "plan_graph: {}\n", error.what());
    return planner::kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "plan_graph: {}\n", error.what());
    return planner::kFailed;
  }
}
