// Plans memory from a file, and says how good the plan is. `plan_graph --help` explains.
//
//   $ plan_graph --layout problem.csv --output solved.csv --svg solved.svg
//   $ plan_graph --order step.json.gz --output order.json
//   $ plan_graph --model resnet50 --batch 32 --svg step.svg
//   $ plan_graph --model resnet50 --method lescea-best-fit
//   $ plan_graph --model resnet50 --save-schedule schedule.json
//   $ plan_graph --show schedule.json --svg schedule.svg
//   $ plan_graph --remat problem.json --budget 8GiB --output schedule.json
//   $ plan_graph --remat problem.json --budget 8GiB --method monet --deadline 60
//   $ plan_graph --model resnet50 --write-remat problem.json
//
// Plans both order and offsets of a step graph (runtime/schedule/trace_json.h), which is given
// as a file or captured from a network by name. --layout takes buffers with lifetimes
// (MiniMalloc's CSV) and gives each an offset. --order takes a training step in other tools'
// formats and orders its operators; --remat takes a rematerialisation problem and decides what
// to run and free within a budget (runtime/planner/io/).
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/bundled.h"
#include "examples/common/console.h"
#include "examples/common/flag_groups.h"
#include "examples/common/flags.h"
#include "examples/common/output_file.h"
#include "examples/common/program.h"
#include "examples/planning/capture_model.h"
#include "examples/planning/remat_program.h"
#include "examples/planning/session_plan.h"
#include "examples/planning/show_schedule.h"
#include "runtime/core/errors.h"
#include "runtime/core/listed.h"
#include "runtime/core/text_file.h"
#include "runtime/cost/profile_limits.h"
#include "runtime/device/profile.h"
#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/baselines/parallel_safe.h"
#include "runtime/planner/baselines/streams.h"
#include "runtime/planner/from_trace.h"
#include "runtime/planner/io/layout_csv.h"
#include "runtime/planner/io/order_graph.h"
#include "runtime/planner/io/svg.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/layout/layout.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/order/passes.h"
#include "runtime/planner/papers/methods.h"
#include "runtime/planner/papers/remat/remat_methods.h"
#include "runtime/planner/pipeline/pipeline.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/schedule_from_plan.h"
#include "runtime/planner/validator.h"
#include "runtime/schedule/schedule_svg.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/trace_json.h"

namespace tidemark::planner {
namespace {

constexpr int kDoesNotFit = kOutOfMemory;

// The slower heuristics are compared up to this many buffers.
constexpr size_t kMaxBuffersToCompare = 20'000;
constexpr Bytes kAmple(int64_t{1} << 61);

struct Flags {
  std::string graph, layout, order, remat, output, save_graph, save_schedule, show, svg,
      write_remat;
  std::string method = "default";
  CaptureRequest capture;
  bool estimate = false;
  bool in_place = false;
  bool parallel_safe = false;
  bool variants = false, no_workspace = false, no_recompute = false;
  int64_t capacity = 0;
  std::optional<Budget> budget;
  std::optional<Bytes> tier;
  bool resident = false;
  Limits limits;
  roam::Parameters roam;
};

void print_header(const std::string& what) {
  print_out("{:<28} {:>10} {:>10} {:>9} {:>9} {:>16} {:>16}\n", what, "peak", "bound", "gap",
            "seconds", "peak in bytes", "bound in bytes");
}

void print_row(const std::string& method, Bytes peak, Bytes bound, double seconds) {
  const double gap = bound > Bytes(0) ? 100.0 * static_cast<double>((peak - bound).count()) /
                                            static_cast<double>(bound.count())
                                      : 0;
  print_out("{:<28} {:>10} {:>10} {:>8.3f}% {:>9.3f} {:>16} {:>16}\n", method,
            format_bytes(peak), format_bytes(bound), gap, seconds, peak.count(), bound.count());
}

// An invalid plan is an internal error, never a result.
void require_valid(const std::vector<std::string>& violations) {
  for (const std::string& violation : violations) {
    print_error("plan_graph: the plan is not valid: {}\n", printable(violation));
  }
  TIDEMARK_CHECK(violations.empty(), "a plan failed validation");
}

int run_layout(const Flags& flags) {
  const Method& method = *find_method(flags.method);
  if (!method.layout) {
    throw UsageError("--method " + flags.method + " has no layout of its own");
  }
  const LayoutInstance instance =
      parse_layout_csv(read_text_file(given_or_bundled(flags.layout)), flags.layout);
  LayoutOptions options;
  options.limits = flags.limits;
  options.target = Bytes(flags.capacity);
  const Stopwatch watch(0);
  const Layout layout = method.layout(instance.buffers, options);
  const double seconds = watch.seconds();
  require_valid(layout_violations(instance.buffers, layout.offsets, layout.height));

  print_out("{}: {} buffers, max load {}\n", flags.layout, instance.buffers.size(),
            format_bytes(max_load(instance.buffers)));
  print_header("method");
  const std::vector<Buffer>& buffers = instance.buffers;
  for (const Heuristic& heuristic : kHeuristics) {
    if (heuristic.max_buffers < SIZE_MAX && buffers.size() > kMaxBuffersToCompare) {
      continue;
    }
    const Stopwatch each(0);
    const Offsets offsets = heuristic.place(buffers);
    print_row(heuristic.name, height(buffers, offsets), layout.bound, each.seconds());
  }
  print_row("plan: " + layout.method, layout.height, layout.bound, seconds);

  if (!flags.svg.empty()) {
    write_output(flags.svg, draw_layout(buffers, layout.offsets,
                                        {flags.layout + ": " + format_bytes(layout.height),
                                         instance.ids, layout.bound}));
  }
  if (flags.capacity > 0 && layout.height > Bytes(flags.capacity)) {
    const bool proven = layout.bound > Bytes(flags.capacity);
    print_error("plan_graph: does not fit in {}{}\n", format_bytes(Bytes(flags.capacity)),
                proven ? " in any layout" : " as far as the search went");
    return kDoesNotFit;
  }
  if (!flags.output.empty()) {
    write_output(flags.output, format_layout_csv(instance, layout.offsets));
  }
  return kDone;
}

// The name of what is placed.
const std::string& name_of(const Problem& problem, const Placement& placement) {
  return placement.storage != kNone ? problem.storages[placement.storage].name
                                    : problem.operators[placement.workspace_of].name;
}

void draw(const std::string& file, const Problem& problem, const Plan& plan,
          const std::string& title) {
  std::vector<Placement> drawn;
  Offsets offsets;
  std::vector<std::string> names;
  for (const Placement& p : plan.placements) {
    if (p.size == Bytes(0) || p.begin >= p.end) continue;
    drawn.push_back(p);
    offsets.push_back(p.offset);
    names.push_back(name_of(problem, p));
  }
  write_output(file, draw_layout(to_blocks(drawn, {}).buffers, offsets,
                                 {title + ": " + format_bytes(plan.peak), names, plan.bound}));
}

// An order, with offsets so that the validator can check all of it.
struct OrderedPlan {
  Plan plan;
  double order_seconds = 0, layout_seconds = 0;
  std::string order_method, layout_method;
};

OrderedPlan order_and_lay_out(const Flags& flags, const Problem& problem) {
  const Method& method = *find_method(flags.method);
  OrderedPlan result;
  if (!method.order) {
    MethodOptions options{{.limits = flags.limits}, flags.roam};
    result.plan = method.plan(problem, options);
    result.order_seconds = result.plan.seconds;
    result.order_method = result.layout_method = result.plan.method;
    return result;
  }
  const Stopwatch watch(0);
  OrderOptions options;
  options.limits = flags.limits;
  const Order order = method.order(problem, options);
  result.order_seconds = watch.seconds();
  result.order_method = order.method;
  LayoutOptions layout_options;
  layout_options.limits = flags.limits;
  result.plan = assemble(problem, order.order, false, [&](const std::vector<Buffer>& buffers) {
    const Layout layout = method.layout ? method.layout(buffers, layout_options)
                                        : plan_layout(buffers, layout_options);
    result.layout_method = layout.method;
    return layout.offsets;
  });
  result.plan.bound = order.bound;
  result.layout_seconds = watch.seconds() - result.order_seconds;
  TIDEMARK_CHECK(result.plan.load == order.load,
                 "the order's load is not what its lifetimes give");
  return result;
}

nlohmann::json plan_order_of(const Flags& flags, const OrderInstance& instance) {
  const Problem& problem = instance.problem;
  const OrderedPlan ordered = order_and_lay_out(flags, problem);
  const Plan& plan = ordered.plan;
  require_valid(violations(problem, plan));

  const Bytes extra = instance.extra, bound = plan.bound + extra;
  print_out("{}: {} operators, one at a time{}\n",
            printable(instance.name.empty() ? flags.order : instance.name), problem.op_count(),
            flags.resident ? ", parameters resident throughout" : "");
  print_header("method");
  print_row("program order", peak_load(problem, program_order(problem)) + extra, bound, 0);
  for (const OrderRule& rule : kOrderRules) {
    const Stopwatch watch(0);
    const Bytes peak = peak_load(problem, rule.order(OrderGraph(problem)));
    print_row(rule.name, peak + extra, bound, watch.seconds());
  }
  print_row("plan: " + ordered.order_method, plan.load + extra, bound, ordered.order_seconds);
  print_row("with offsets: " + ordered.layout_method, plan.peak + extra, bound,
            ordered.layout_seconds);

  if (!flags.svg.empty()) {
    draw(flags.svg, problem, plan, flags.order);
  }
  return {{"name", instance.name},
          {"operators", problem.op_count()},
          {"program_order", (peak_load(problem, program_order(problem)) + extra).count()},
          {"order", node_order(instance, plan.order)},
          {"peak", (plan.load + extra).count()},
          {"peak_with_offsets", (plan.peak + extra).count()},
          {"bound", bound.count()},
          {"seconds", ordered.order_seconds},
          {"method", ordered.order_method}};
}

int run_order(const Flags& flags) {
  const auto instances =
      parse_order_graphs(read_text_file(given_or_bundled(flags.order)), flags.order,
                         flags.resident ? Parameters::kResident : Parameters::kAsNodes);
  nlohmann::json plans = nlohmann::json::array();
  for (const OrderInstance& instance : instances) {
    plans.push_back(plan_order_of(flags, instance));
  }
  if (!flags.output.empty()) {
    const nlohmann::json& result = plans.size() == 1 ? plans[0] : plans;
    write_output(flags.output, result.dump(1) + "\n");
  }
  return kDone;
}

// `foreign`: sizes of storages that a training has beside those of the step.
StepTrace read_or_capture(const Flags& flags, std::vector<Bytes>& foreign) {
  if (flags.graph.empty()) return capture_model(flags.capture);
  const std::string text = read_text_file(given_or_bundled(flags.graph));
  const bool is_schedule =
      text.substr(0, 200).find("\"tidemark schedule\"") != std::string::npos;
  if (!is_schedule) return trace_from_json(text, flags.graph);
  SavedSchedule saved = schedule_from_json(text, flags.graph);
  foreign = std::move(saved.schedule.foreign);
  return std::move(saved.trace);
}

// The operators before the backward pass, which keep nothing for it: MXNet's script calls this
// forward only.
Problem forward_only(StepTrace graph) {
  const auto is_gradient = [&](const StepTrace::Op& op) {
    return std::any_of(op.outputs.begin(), op.outputs.end(), [&](uint32_t output) {
      return graph.storages[output].category == Category::kGradient;
    });
  };
  const auto end = std::find_if(graph.ops.begin(), graph.ops.end(), is_gradient);
  graph.ops.erase(end, graph.ops.end());
  // Nothing is kept for later: a storage ends with its last use.
  std::vector<size_t> last(graph.storages.size(), graph.ops.size());
  for (size_t k = 0; k < graph.ops.size(); ++k) {
    graph.ops[k].released.clear();
    for (const StepTrace::Input& input : graph.ops[k].inputs) last[input.storage] = k;
    for (const uint32_t output : graph.ops[k].outputs) last[output] = k;
  }
  for (uint32_t s = 0; s < last.size(); ++s) {
    if (last[s] < graph.ops.size() && !graph.storages[s].at_end) {
      graph.ops[last[s]].released.push_back(s);
    }
  }
  return problem_from_trace(graph, {.in_place = true});
}

// Prints what MXNet's memory cost script prints, and its note's sharing for several streams.
int run_estimate(const Problem& whole, const StepTrace& graph) {
  const Problem forward = forward_only(graph);
  print_out("{:<44} {:>16} {:>16}\n", "bytes", "training", "forward only");
  const auto row = [&](const char* what, const auto& peak_of) {
    print_out("{:<44} {:>16} {:>16}\n", what, peak_of(whole).count(), peak_of(forward).count());
  };
  const auto note = [&](const char* what, bool in_place, bool sharing) {
    row(what, [&](const Problem& problem) {
      return memory_note(problem, {.in_place = in_place, .sharing = sharing}).peak;
    });
  };
  const auto streams = [&](const char* what, StreamSharing sharing) {
    row(what, [&](const Problem& problem) {
      return stream_safe(problem, {.freedom = Freedom::kOperators, .sharing = sharing}).peak;
    });
  };
  note("no sharing", false, false);
  note("in place", true, false);
  note("sharing", false, true);
  note("in place and sharing", true, true);
  streams("both, no operator waits: one path", StreamSharing::kPaths);
  streams("both, no operator waits: descendants", StreamSharing::kAncestors);
  streams("both, no operator waits: offsets", StreamSharing::kOffsets);
  print_out("a block serves sizes within a factor of {}; {} paths are coloured\n",
            MemoryNoteOptions().match_range, StreamOptions().paths);
  return kDone;
}

nlohmann::json to_json(const Problem& problem, const Plan& plan) {
  nlohmann::json json{{"peak", plan.peak.count()},
                      {"bound", plan.bound.count()},
                      {"gap", plan.gap()},
                      {"seconds", plan.seconds},
                      {"method", plan.method},
                      {"order", plan.order},
                      {"placements", nlohmann::json::array()}};
  for (const Placement& p : plan.placements) {
    nlohmann::json entry{{"name", name_of(problem, p)},
                         {"begin", p.begin},
                         {"end", p.end},
                         {"size", p.size.count()},
                         {"offset", p.offset.value()}};
    entry[p.storage != kNone ? "storage" : "workspace_of"] =
        p.storage != kNone ? p.storage : p.workspace_of;
    json["placements"].push_back(std::move(entry));
  }
  return json;
}

// As a plan counts them that keeps them apart.
Bytes persistent_bytes(const StepTrace& graph) {
  Bytes sum{0};
  for (const StepTrace::Storage& storage : graph.storages) {
    if (storage.at_start && storage.at_end) sum += storage.size;
  }
  return sum;
}

// REQUIRES: as schedule_from_plan().
void save_schedule(const Flags& flags, const StepTrace& graph, const Problem& problem,
                   const Plan& plan) {
  const Schedule schedule = schedule_from_plan(graph, problem, plan);
  const PlanLimits limits{.space = plan.peak + persistent_bytes(graph)};
  require_valid(schedule_violations(graph, limits, schedule));
  write_output(flags.save_schedule, tidemark::to_json(graph, schedule));
}

// `peak`: what a share of the budget is of.
PlanLimits limits_of(const Flags& flags, Bytes peak = Bytes(0)) {
  PlanLimits limits = limits_of(load_profile(flags.capture.profile));
  limits.space = flags.budget ? flags.budget->resolve(peak) : Bytes(0);
  limits.tier_space = kAmple;
  return limits;
}

int run_show(const Flags& flags) {
  SavedSchedule saved = schedule_from_json(read_text_file(flags.show), flags.show);
  PlanLimits limits = limits_of(flags);
  const PlanLimits ample{.space = kAmple, .tier_space = kAmple};
  if (flags.parallel_safe && schedule_violations(saved.trace, ample, saved.schedule).empty()) {
    const Bytes planned = saved.schedule.peak;
    saved.schedule = parallel_safe(saved.trace, limits, saved.schedule);
    // In more space, a schedule may take less time than those bounds.
    if (saved.schedule.peak > planned) TimeBounds{}.write_to(saved.schedule);
  }
  const int code = print_schedule(flags.show, saved, limits);
  if (!flags.save_schedule.empty()) {
    if (code == kDone) {
      write_output(flags.save_schedule, tidemark::to_json(saved.trace, saved.schedule));
    } else {
      print_error("plan_graph: {} is not written\n", flags.save_schedule);
    }
  }
  if (!flags.svg.empty()) {
    if (!saved.schedule.placed) {
      throw UsageError("--svg: the schedule in " + flags.show + " has no addresses to draw");
    }
    write_output(flags.svg,
                 draw_schedule(saved.trace, saved.schedule,
                               flags.show + ": " + format_bytes(saved.schedule.peak)));
  }
  return code;
}

int run_graph(const Flags& flags) {
  const Stopwatch reading(0);
  std::vector<Bytes> foreign;
  const StepTrace graph = read_or_capture(flags, foreign);
  const std::string name = flags.graph.empty()
                               ? fmt::format("{}, batch {}, {}", flags.capture.model,
                                             flags.capture.batch, flags.capture.optimizer)
                               : flags.graph;
  if (!flags.save_graph.empty()) write_output(flags.save_graph, tidemark::to_json(graph));
  if (!flags.write_remat.empty()) {
    write_rematerialization_problem(graph, {.name = name,
                                            .file = flags.write_remat,
                                            .in_place = flags.in_place,
                                            .variants = flags.variants,
                                            .workspace = !flags.no_workspace,
                                            .recompute = !flags.no_recompute});
    return kDone;
  }
  if (flags.budget) {
    const PlanLimits space = limits_of(flags, program_order_peak(graph));
    if (space.space == Bytes(0)) throw UsageError("--budget: a budget must be positive");
    if (flags.tier) {
      PlanLimits limits = space;
      limits.tier_space = *flags.tier;
      return plan_step_as_session(graph, {.name = name,
                                          .limits = limits,
                                          .foreign = foreign,
                                          .effort = flags.limits.nodes,
                                          .save_schedule = flags.save_schedule});
    }
    return plan_step_rematerialization(
        graph, {name, space, foreign, flags.save_schedule, flags.limits, flags.method});
  }
  // A schedule is planned as sessions run it: residents lie apart, outputs overwrite inputs.
  const bool saves = !flags.save_schedule.empty();
  if (saves) {
    const std::string why_not = why_not_plannable(graph);
    if (!why_not.empty()) throw UsageError("--save-schedule: " + why_not);
  }
  const Problem problem = problem_from_trace(
      graph, {.residents_apart = saves, .in_place = flags.in_place || flags.estimate || saves});
  print_out("{}: {} operators, {} storages; {} in program order ({:.2f} s to capture)\n", name,
            graph.ops.size(), graph.storages.size(), format_bytes(program_order_peak(graph)),
            reading.seconds());
  if (flags.estimate) return run_estimate(problem, graph);
  if (saves) {
    print_out("persistent storages, {}, are kept apart and not counted below\n",
              format_bytes(persistent_bytes(graph)));
  }
  const MethodOptions options{{.limits = flags.limits}, flags.roam};
  const Method& method = *find_method(flags.method);
  const Plan plan = method.plan(problem, options);
  require_valid(violations(problem, plan));
  print_header("method");
  Bytes best = plan.peak;
  nlohmann::json methods = nlohmann::json::array();
  for (const Baseline& baseline : baselines()) {
    if (!baseline.quick && problem.storages.size() > kMaxBuffersToCompare) continue;
    const Stopwatch watch(0);
    const Plan other = baseline.plan(problem);
    require_valid(violations(problem, other));
    const double seconds = watch.seconds();
    best = std::min(best, other.peak);
    print_row(baseline.name, other.peak, plan.bound, seconds);
    methods.push_back(
        {{"name", baseline.name}, {"peak", other.peak.count()}, {"seconds", seconds}});
  }
  print_row("plan: " + plan.method, plan.peak, plan.bound, plan.seconds);
  if (best < plan.peak && !method.restriction.empty()) print_out("{}\n", method.restriction);
  const Bytes unused = plan.peak - plan.load;
  if (plan.peak > Bytes(0)) {
    print_out("fragmentation {:.3f} %\n", 100.0 * static_cast<double>(unused.count()) /
                                              static_cast<double>(plan.peak.count()));
  }
  if (saves) save_schedule(flags, graph, problem, plan);
  if (!flags.output.empty()) {
    nlohmann::json json = to_json(problem, plan);
    json["graph"] = name;
    json["operators"] = graph.ops.size();
    json["storages"] = graph.storages.size();
    json["program_order_load"] = program_order_peak(graph).count();
    json["load"] = plan.load.count();
    json["methods"] = std::move(methods);
    write_output(flags.output, json.dump(1) + "\n");
  }
  if (!flags.svg.empty()) {
    draw(flags.svg, problem, plan, name);
  }
  return kDone;
}

// Refuses flags that the mode or the method would ignore. What flags of one kind need, such as
// --capacity --layout, CLI11 checks.
void refuse_without_meaning(const CLI::App& app, const Flags& flags) {
  const bool shows = !flags.show.empty(), computes_again = !flags.remat.empty();
  const bool lays_out = !flags.layout.empty(), orders = !flags.order.empty();
  const bool writes_problem = !flags.write_remat.empty();
  const bool plans = !shows && !flags.estimate && !writes_problem;
  const bool has_step = !flags.graph.empty() || !flags.capture.model.empty();
  const bool in_budget = plans && has_step && flags.budget;
  const bool plans_step = plans && has_step && !flags.budget;
  // --method names one of two lists; a name of the other one is refused elsewhere.
  const Method* const method = find_method(flags.method);
  const remat::RematMethod* const again = remat::find_remat_method(flags.method);
  const bool by_again = computes_again || in_budget;
  const bool searches = by_again ? !again || again->searches : !method || method->searches;
  const bool solves = by_again ? again && again->needs_solver : method && method->needs_solver;
  std::vector<std::string> in_place;
  for (const Method& each : methods()) {
    if (each.may_be_in_place) in_place.push_back(each.name);
  }
  struct Meaning {
    const char* flag;
    bool has;
    std::string where;
  };
  const std::string planning = "planning, not for --show, --estimate or --write-remat";
  const std::string step = "a step: GRAPH.json or --model";
  const std::string roam = "--method roam and its variants";
  const bool is_roam = (plans_step || orders) && method && method->takes_roam_parameters;
  for (const Meaning& meaning : {
           Meaning{"--roam-node-limit", is_roam, roam},
           Meaning{"--roam-delay-radius", is_roam, roam},
           Meaning{"--roam-delay-coefficient", is_roam, roam},
           Meaning{"--method", plans, planning},
           Meaning{"--tier", in_budget, "the plan of a step with --budget"},
           Meaning{"--method", !flags.tier, "planning without --tier"},
           Meaning{"--deadline", !flags.tier,
                   "planning without --tier, whose work is counted: --nodes"},
           Meaning{"--seed", !flags.tier, "planning without --tier"},
           Meaning{"--deadline", plans, planning},
           Meaning{"--nodes", plans, planning},
           Meaning{"--nodes", searches,
                   "our own search; --method " + flags.method + " has none"},
           Meaning{"--seed", plans, planning},
           Meaning{"--seed", searches || solves,
                   "a search or a solver; --method " + flags.method + " has neither"},
           Meaning{"--save-graph", has_step, step},
           Meaning{"--write-remat", has_step, step},
           Meaning{"--estimate", has_step && !writes_problem && !flags.budget,
                   step + ", without --write-remat or --budget"},
           Meaning{"--budget", shows || computes_again || in_budget,
                   "--show, --remat or the plan of a step: GRAPH.json or --model"},
           Meaning{"--in-place",
                   writes_problem || (plans_step && method && method->may_be_in_place),
                   "--write-remat, or a step without --budget and a method that can plan so: " +
                       listed(in_place)},
           Meaning{"--profile", !flags.capture.model.empty() || shows || in_budget,
                   "--model, --show or a step with --budget"},
           Meaning{"--save-schedule", plans_step || in_budget || (shows && flags.parallel_safe),
                   "the plan of a step, GRAPH.json or --model, or --show with --parallel-safe"},
           Meaning{"--output", plans_step || lays_out || orders || computes_again,
                   "--layout, --order, --remat or the plan of a step without --budget"},
           Meaning{"--svg", plans_step || lays_out || orders || shows,
                   "--layout, --order, --show or the plan of a step without --budget"},
           Meaning{"--momentum", flags.capture.optimizer == "sgd", "--optimizer sgd"},
       }) {
    if (meaning.has || app.count(meaning.flag) == 0) continue;
    throw UsageError(std::string(meaning.flag) + " is for " + meaning.where);
  }
  if (solves && flags.limits.seconds <= 0) {
    throw UsageError("--deadline 0 leaves no time for the solver that --method " +
                     flags.method + " needs");
  }
}

int run(int argc, char** argv) {
  CLI::App app{
      "Plans memory: a training step's order and offsets; or offsets for buffers, an order for "
      "operators, or rematerialisation, alone.",
      "plan_graph"};
  set_up_help(
      app,
      "\nExit codes: 0 planned; 1 failed, no plan was found within --deadline, or standard "
      "output could\nnot be written; 2 bad flags or files; 3 does not fit in --capacity or "
      "--budget, or memory ran out.");
  Flags flags;
  auto* graph =
      app.add_option("GRAPH", flags.graph,
                     "Step graph, as --save-graph writes it, or a schedule of a training "
                     "(--save-schedule), whose step is planned; may be gzipped (.gz)");
  auto* model = app.add_option("--model", flags.capture.model,
                               "A training step of this network, captured on the simulator: " +
                                   listed(capturable_models()))
                    ->excludes(graph);
  const auto add_size = [&](const char* name, int64_t& size, int largest, const char* about) {
    app.add_option(name, size, about)->check(CLI::Range(1, largest))->needs(model);
  };
  add_size("--batch", flags.capture.batch, 1 << 20, "Batch size of --model");
  add_size("--image-size", flags.capture.image_size, 1 << 14,
           "Image size of --model [224, r3d_18 112, unet 416 x 608, unet3d 128]");
  add_size("--seq-length", flags.capture.length, 1 << 16, "Sequence length of --model [128]");
  app.add_option("--optimizer", flags.capture.optimizer,
                 "Optimizer of --model; adam-unfused: a dozen operators for each parameter")
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "adam-unfused"}))
      ->needs(model);
  app.add_option("--momentum", flags.capture.momentum,
                 "Momentum of --optimizer sgd; 0: parameters have no state")
      ->check(CLI::Range(0.0, 1.0))
      ->check(finite_number())
      ->needs(model);
  app.add_option("--clip", flags.capture.clip,
                 "Limit on the norm of all gradients together, of a --model of text; 0: no "
                 "clipping, so that updates need not wait for all gradients [1, as train_bert]")
      ->check(CLI::Range(0.0, 1e9))
      ->check(finite_number())
      ->needs(model);
  app.add_option("--profile", flags.capture.profile,
                 "Device whose profile gives the costs of --model's operators "
                 "and, for --show and --budget, of copies");
  std::string methods_listed = "Plan by this method:";
  std::vector<std::string> names;
  for (const Method& method : methods()) {
    names.push_back(method.name);
    if (!method.baseline) {
      methods_listed += " " + method.name + " (" + method.what + "),";
    }
  }
  methods_listed += " or a baseline; with --remat, or with a step and --budget:";
  for (const remat::RematMethod& method : remat::remat_methods()) {
    if (find_method(method.name) == nullptr) names.push_back(method.name);
    methods_listed += (&method == &remat::remat_methods()[0] ? " " : ", ") + method.name +
                      " (" + method.what + ")";
  }
  app.add_option("--method", flags.method, methods_listed)->check(CLI::IsMember(names));
  app.add_option("--roam-node-limit", flags.roam.node_limit,
                 "ROAM: split subgraphs of more operators [100]")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--roam-delay-radius", flags.roam.delay_radius,
                 "ROAM: a weight update may wait if its gradients are more than this many "
                 "times the mean tensor [8]")
      ->check(CLI::Range(0.0, 1e9))
      ->check(finite_number());
  app.add_option("--roam-delay-coefficient", flags.roam.delay_coefficient,
                 "ROAM: memory of an update while it runs, in sizes of its gradients (the "
                 "paper: 3 for Adam) [what each update takes]")
      ->check(CLI::Range(1e-9, 1e9))
      ->check(finite_number());
  app.add_flag(
      "--estimate", flags.estimate,
      "Print what MXNet's memory cost script does: without sharing, in place, with "
      "sharing, with both; the same where operators of many streams wait for no others; and "
      "forward only");
  app.add_flag("--in-place", flags.in_place,
               "Let outputs reuse the space of inputs that are no longer needed, where "
               "operators allow it, as in steps that run under a plan");
  app.add_option("--save-graph", flags.save_graph, "Write the captured step to FILE");
  app.add_option(
      "--save-schedule", flags.save_schedule,
      "Write the plan to FILE as a schedule that a session could run, together with "
      "the step; persistent storages are kept apart, and outputs overwrite inputs, in "
      "what is printed too. With --budget: a schedule that computes again what does "
      "not fit, by --method as for --remat");
  auto* write_remat = app.add_option(
      "--write-remat", flags.write_remat,
      "Write the step to FILE as a rematerialisation problem for --remat, with some "
      "budgets to try, and stop; --in-place adds variants that run in place");
  app.add_flag(
         "--same-bit-variants", flags.variants,
         "Add the operators' variants: backward operators that read other values to the same "
         "bits, as MONeT selects them (the gradient of ReLU from its input or output instead "
         "of signs, those of ReLU6 and max pooling from their inputs)")
      ->needs(write_remat);
  app.add_flag("--no-workspace", flags.no_workspace,
               "Count no operator's workspace, as Checkmate does")
      ->needs(write_remat);
  app.add_flag("--no-recompute", flags.no_recompute, "Allow every node a single run")
      ->needs(write_remat);
  auto* show =
      app.add_option(
             "--show", flags.show,
             "Explain a schedule that --save-schedule wrote, here or in training; exit code "
             "1 if it is not valid, 3 if it does not fit in --budget; --svg draws it")
          ->excludes(graph)
          ->excludes(model);
  app.add_flag("--parallel-safe", flags.parallel_safe,
               "Lay the schedule of --show out anew so that neither compute nor a copy waits "
               "for bytes, as in MXNet's memory note: a baseline. --save-schedule writes it")
      ->needs(show);
  auto* budget = app.add_option_function<std::string>(
      "--budget",
      [&](const std::string& text) {
        const bool is_share = text.ends_with('%');
        flags.budget = is_share ? parse_budget(text) : Budget{.bytes = parse_bytes(text)};
        if (flags.budget->bytes == Bytes(0))
          throw CLI::ValidationError("--budget", "a budget must be positive");
      },
      "Memory limit of a schedule, such as 12GiB, for --remat, --show or a step; for a step "
      "also a share of what it takes in program order, such as 60% [--show: what the schedule "
      "takes]");
  app.add_option_function<std::string>(
         "--tier", [&](const std::string& text) { flags.tier = parse_bytes(text); },
         "With --budget on a step: plan it as a training with that much memory to offload to "
         "does: its order, what is evicted and offloaded, and addresses. Prints how much "
         "longer "
         "the step takes than without a limit, and what no plan can be below; --nodes: of at "
         "most so many simulated calls. 0: nothing is offloaded")
      ->needs(budget);
  auto* remat =
      app.add_option("--remat", flags.remat,
                     "JSON of a rematerialisation problem: nodes with time, bytes, inputs and "
                     "variants (data/instances/remat/README.md); may be gzipped (.gz). Finds "
                     "the fastest runs and frees within --budget, and a lower bound on the "
                     "time of any; --output writes the schedule. With --method: a published "
                     "method instead, which says how fast its own kind of schedule can be")
          ->needs(budget);
  auto* layout = app.add_option("--layout", flags.layout,
                                "CSV of buffers: id,lower,upper,size; lower <= time < upper");
  auto* order =
      app.add_option("--order", flags.order,
                     "JSON graph of a training step, or several; may be gzipped (.gz)");
  layout->excludes(order)->excludes(graph)->excludes(model)->excludes(show);
  order->excludes(graph)->excludes(model)->excludes(show);
  remat->excludes(graph)->excludes(model)->excludes(show)->excludes(layout)->excludes(order);
  app.add_option("--capacity", flags.capacity,
                 "Stop at a layout of at most this many bytes; exit code 3 if none is found")
      ->check(whole_number())
      ->check(CLI::PositiveNumber)
      ->needs(layout);
  app.add_flag("--resident", flags.resident,
               "Keep parameters from the first operator to the last, instead of from the "
               "operator that produces them to their last use")
      ->needs(order);
  app.add_option(
      "--output", flags.output,
      "Write the plan to FILE: CSV with offsets, or JSON with order, peak, bound, seconds");
  app.add_option("--svg", flags.svg, "Draw offsets over time, as SVG, to FILE");
  app.add_option("--deadline", flags.limits.seconds, "Search for at most this many seconds")
      ->check(CLI::Range(0.0, 1e6))
      ->check(finite_number());
  app.add_option(
         "--nodes", flags.limits.nodes,
         "Search for at most this many steps, which gives the same plan on every machine")
      ->check(whole_number())
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", flags.limits.seed, "Seed of the search's random choices")
      ->check(whole_number());
  int exit_code = 0;
  if (!parse_or_explain(app, argc, argv, exit_code)) return exit_code;
  refuse_without_meaning(app, flags);
  const bool has_step = !flags.graph.empty() || !flags.capture.model.empty();
  if (flags.budget && !flags.budget->bytes && !has_step) {
    throw UsageError(
        "--budget: a share such as 60% is of what a step takes in program order, "
        "so it needs GRAPH.json or --model; give bytes, such as 12GiB");
  }
  if (!flags.show.empty()) return run_show(flags);
  if (!flags.remat.empty()) {
    return plan_rematerialization(
        {flags.remat, *flags.budget->bytes, flags.output, flags.limits, flags.method});
  }
  if (find_method(flags.method) == nullptr && budget->count() == 0) {
    throw UsageError("--method " + flags.method + " needs --remat, or a step and --budget");
  }
  if (has_step) return run_graph(flags);
  if (flags.layout.empty() && flags.order.empty()) {
    print_error(
        "plan_graph: give GRAPH.json, --model NAME, --layout FILE, --order FILE, --remat FILE "
        "or --show FILE; see --help\n");
    return kBadInput;
  }
  return flags.layout.empty() ? run_order(flags) : run_layout(flags);
}

}  // namespace
}  // namespace tidemark::planner

int main(int argc, char** argv) {
  return tidemark::run_program("plan_graph",
                               [&] { return tidemark::planner::run(argc, argv); });
}
