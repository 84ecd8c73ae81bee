#include "runtime/planner/papers/olla/olla.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/planner/assemble.h"
#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/passes.h"
#include "runtime/planner/papers/olla/early_updates.h"
#include "runtime/planner/papers/olla/joint_program.h"
#include "runtime/planner/papers/olla/lifetime_program.h"
#include "runtime/planner/papers/olla/location_program.h"
#include "runtime/planner/papers/olla/pyramid.h"

namespace tidemark::planner::olla {
namespace {

// Solvers' tolerances suit numbers of about this size.
constexpr double kWellScaled = 1000;
// Solvers reproduce their own numbers to this precision.
constexpr double kTolerance = 1e-6;

double unit_for(int64_t bytes) {
  return std::max(1.0, static_cast<double>(bytes) / kWellScaled);
}

// A number from a solver's log, in bytes; 0 if it is none that bytes could have.
Bytes to_bytes(double value, double unit) {
  const double bytes = value * unit;
  return Bytes(bytes > 0 && bytes < 9e18 ? std::llround(bytes) : 0);
}

// Converts a solver's bound to bytes: a multiple of `divisor`, as all peaks are.
Bytes to_bound(double bound, double unit, int64_t divisor, Bytes at_most) {
  const double bytes = bound * unit * (1 - kTolerance) - kTolerance;
  if (!(bytes > 0)) return Bytes(0);
  if (bytes >= static_cast<double>(at_most.count())) return at_most;
  const auto whole = static_cast<int64_t>(std::ceil(bytes / static_cast<double>(divisor)));
  return std::min(at_most, Bytes(whole * divisor));
}

// `unit`: bytes for one unit of the objective.
Solution run(const Program& program, const Options& options, double seconds, double unit,
             Report& report) {
  report.variables = program.variables.size();
  report.integers = program.integer_count();
  report.rows = program.rows.size();
  const Solver solver = options.solver ? *options.solver : require_solver();
  Solution solution = solve(program, {.seconds = seconds, .seed = options.limits.seed}, solver);
  report.seconds = solution.seconds;
  report.status = solution.status;
  report.solver = solution.solver;
  report.note = solution.note;
  for (const planner::Improvement& found : solution.improvements) {
    report.improvements.push_back({found.seconds, to_bytes(found.objective, unit),
                                   to_bytes(std::max(0.0, found.bound), unit)});
  }
  return solution;
}

int timestep_count(const Graph& graph, const Options& options) {
  const auto operators = static_cast<int>(graph.op_count());
  if (options.timesteps != Timesteps::kLevels) return operators;
  return std::min(operators, depth(graph) + options.more_timesteps);
}

// The order program of a problem with its control edges, before it is solved.
struct OrderModel {
  OrderModel(const Problem& given, const Options& options)
      : edges(options.early_updates ? early_updates(given) : std::vector<ControlEdge>{}),
        problem(with_edges(given, edges)),
        graph(problem),
        spans(make_spans(graph, timestep_count(graph, options), options.spans)),
        least(load_bound(problem)) {
    known = program_order(problem);
    std::vector<OpId> other = lescea(problem);
    if (peak_load(problem, other) < peak_load(problem, known)) known = std::move(other);
    unit = unit_for(peak_load(problem, known).count());
    for (const Tensor& tensor : graph.tensors) divisor = std::gcd(divisor, tensor.size);
    divisor = std::max<int64_t>(1, std::gcd(divisor, graph.resident));
  }

  // The known order as timesteps. If there are too few, operators go as early or as late as
  // possible.
  std::vector<int> start(const LifetimeProgram& program, Timesteps timesteps) const {
    if (timesteps != Timesteps::kLevels) {
      std::vector<int> result(known.size());
      for (size_t t = 0; t < known.size(); ++t) result[known[t]] = static_cast<int>(t);
      return result;
    }
    const Spans reduced = make_spans(graph, spans.steps, true);
    return program.peak_of(reduced.asap) <= program.peak_of(reduced.alap) ? reduced.asap
                                                                          : reduced.alap;
  }

  // Orders the operators of each timestep: first the one after which the fewest bytes are live.
  std::vector<OpId> serialise(const std::vector<int>& timesteps) const {
    std::vector<std::vector<OpId>> groups(static_cast<size_t>(spans.steps));
    for (size_t v = 0; v < timesteps.size(); ++v) {
      groups[timesteps[v]].push_back(static_cast<OpId>(v));
    }
    const OrderGraph order_graph(problem);
    OrderState state(order_graph);
    for (std::vector<OpId>& group : groups) {
      while (!group.empty()) {
        const auto next = std::min_element(group.begin(), group.end(), [&](OpId a, OpId b) {
          return std::pair(state.growth(a), a) < std::pair(state.growth(b), b);
        });
        state.run(*next);
        group.erase(next);
      }
    }
    return state.path();
  }

  // Whether the program's bound also holds for the problem.
  bool bounds_problem(const Options& options) const {
    return edges.empty() && problem.may_be_in_place.empty() &&
           options.timesteps != Timesteps::kLevels;
  }

  std::vector<ControlEdge> edges;
  Problem problem;
  Graph graph;
  Spans spans;
  Bytes least;              // load of any order
  std::vector<OpId> known;  // LESCEA's or the program's
  double unit = 1;
  int64_t divisor = 0;  // divides all sizes
};

// Notes it if a program would be.
bool is_too_large(int64_t terms, Report& report) {
  if (terms <= kMaxTerms) return false;
  report.note =
      "the program would have " + std::to_string(terms / 1'000'000) + " million terms";
  return true;
}

void bound_peak(const LifetimeProgram& lifetimes, Program& program, const OrderModel& model) {
  program.variables[lifetimes.peak()].lower =
      static_cast<double>(model.least.count()) / model.unit;
}

// Timesteps of a solution of (14), if any.
std::optional<std::vector<int>> solve_lifetimes(const OrderModel& model, const Options& options,
                                                double seconds, Report& report) {
  const Stopwatch watch(seconds);
  if (is_too_large(LifetimeProgram::term_count(model.graph, model.spans), report))
    return std::nullopt;
  LifetimeProgram lifetimes(model.graph, model.spans,
                            options.timesteps == Timesteps::kOnePerStep, model.unit);
  Program& program = lifetimes.program();
  if (options.bound) bound_peak(lifetimes, program, model);
  if (options.start)
    program.start = lifetimes.solution(model.start(lifetimes, options.timesteps));
  const Solution solution = run(program, options, watch.left(), model.unit, report);
  if (solution.values.empty()) return std::nullopt;
  std::vector<int> timesteps = lifetimes.timesteps(solution.values);
  report.peak = Bytes(lifetimes.peak_of(timesteps));
  report.bound = to_bound(solution.bound, model.unit, model.divisor, report.peak);
  return timesteps;
}

Order to_order(const OrderModel& model, const Options& options,
               const std::optional<std::vector<int>>& timesteps, const Report& report,
               const Problem& problem) {
  Order result;
  result.method = "OLLA";
  if (timesteps) {
    result.order = model.serialise(*timesteps);
    result.load = peak_load(problem, result.order);
  }
  const Bytes known = peak_load(problem, model.known);
  if (options.start && (!timesteps || known < result.load)) {
    result.order = model.known;
    result.load = known;
    result.method = "OLLA's start";
  }
  result.bound = load_bound(problem);
  if (model.bounds_problem(options)) result.bound = std::max(result.bound, report.bound);
  return result;
}

// Solves (9), order and places at once, if the program is small enough.
std::optional<Plan> plan_jointly(const Problem& problem, const OrderModel& model,
                                 const Options& options, Report& report) {
  const Stopwatch watch(options.limits.seconds);
  if (is_too_large(JointProgram::term_count(model.graph, model.spans), report))
    return std::nullopt;
  LifetimeProgram lifetimes(model.graph, model.spans,
                            options.timesteps == Timesteps::kOnePerStep, model.unit);
  JointProgram joint(model.graph, model.spans, options.precedence, model.unit, lifetimes);
  Program& program = joint.program();
  if (options.bound) bound_peak(lifetimes, program, model);
  if (options.start) {
    const std::vector<int> timesteps = model.start(lifetimes, options.timesteps);
    Offsets offsets = fit_around(joint.buffers(timesteps), {});
    for (Offset& offset : offsets) offset = offset + Bytes(model.graph.resident);
    program.start = joint.solution(timesteps, offsets);
  }
  const Solution solution = run(program, options, watch.left(), model.unit, report);
  if (solution.values.empty()) return std::nullopt;
  const std::vector<int> timesteps = lifetimes.timesteps(solution.values);
  const Offsets offsets = joint.offsets(solution.values, timesteps);

  Plan plan;
  plan.order = model.serialise(timesteps);
  plan.placements = planner::lifetimes(problem, plan.order);
  Offset resident;
  std::vector<Offset> of_storage(problem.storages.size()), of_op(problem.op_count());
  std::vector<bool> is_tensor(problem.storages.size(), false);
  for (size_t e = 0; e < offsets.size(); ++e) {
    const Tensor& tensor = model.graph.tensors[e];
    if (tensor.workspace_of != kNone) of_op[tensor.workspace_of] = offsets[e];
    if (tensor.storage == kNone) continue;
    of_storage[tensor.storage] = offsets[e];
    is_tensor[tensor.storage] = true;
  }
  for (Placement& p : plan.placements) {
    if (p.workspace_of != kNone) {
      p.offset = of_op[p.workspace_of];
    } else if (is_tensor[p.storage]) {
      p.offset = of_storage[p.storage];
    } else if (p.begin < p.end) {
      p.offset = resident;
      resident = resident + p.size;
    }
  }
  fill_figures(plan);
  report.peak = plan.peak;
  report.bound = to_bound(solution.bound, model.unit, model.divisor, plan.peak);
  plan.bound = load_bound(problem);
  if (model.bounds_problem(options)) plan.bound = std::max(plan.bound, report.bound);
  plan.method = "OLLA, jointly";
  return plan;
}

}  // namespace

double Report::gap() const {
  if (bound <= Bytes(0)) return peak > Bytes(0) ? 1 : 0;
  return static_cast<double>((peak - bound).count()) / static_cast<double>(bound.count());
}

OrderResult order(const Problem& problem, const Options& options) {
  check_problem(problem);
  const Stopwatch watch(options.limits.seconds);
  OrderResult result;
  const OrderModel model(problem, options);
  const auto timesteps =
      solve_lifetimes(model, options, std::max(0.0, watch.left()), result.report);
  if (timesteps || options.start) {
    result.order = to_order(model, options, timesteps, result.report, problem);
  }
  return result;
}

LayoutResult layout(const std::vector<Buffer>& buffers, const Options& options) {
  check_buffers(buffers);
  const Stopwatch watch(options.limits.seconds);
  LayoutResult result;
  Report& report = result.report;
  LocationOptions location;
  location.precedence = options.precedence;
  if (options.pyramid) location.placed = pyramid(buffers);
  const Bytes load = max_load(buffers);
  Layout best;
  best.bound = load;
  best.method = "OLLA";
  const auto give = [&](Offsets offsets) {
    const Bytes top = height(buffers, offsets);
    if (result.layout && top >= result.layout->height) return;
    best.offsets = std::move(offsets);
    best.height = top;
    result.layout = best;
  };
  if (options.start) {
    give(fit_around(buffers, location.placed));
    location.limit = result.layout->height;
  }
  if (options.bound) location.bound = load;
  const int64_t terms = LocationProgram::term_count(buffers, location);
  if (result.layout && options.bound && result.layout->height == load) {
    report.status = SolveStatus::kOptimal;
    report.note = "the start is at the bound";
    report.peak = report.bound = load;
    return result;
  }
  if (is_too_large(terms, report)) return result;
  location.unit = unit_for(load.count());
  const bool lossless = location.placed.empty();
  LocationProgram locations(buffers, location);
  if (options.start) locations.program().start = locations.solution(best.offsets);
  const Solution solution =
      run(locations.program(), options, std::max(0.0, watch.left()), location.unit, report);
  if (solution.values.empty()) return result;
  give(locations.offsets(solution.values));
  int64_t divisor = 0;
  for (const Buffer& b : buffers) divisor = std::gcd(divisor, b.size.count());
  report.peak = result.layout->height;
  report.bound = std::max(load, to_bound(solution.bound, location.unit,
                                         std::max<int64_t>(1, divisor), report.peak));
  if (lossless) result.layout->bound = report.bound;
  return result;
}

PlanResult plan(const Problem& problem, const Options& options) {
  check_problem(problem);
  const Stopwatch watch(options.limits.seconds);
  PlanResult result;
  if (!options.splitting && options.reorder) {
    const OrderModel model(problem, options);
    result.plan = plan_jointly(problem, model, options, result.lifetimes);
    if (result.plan || !options.start) {
      if (result.plan) result.plan->seconds = watch.seconds();
      return result;
    }
  }
  OrderResult ordered;
  if (!options.reorder) {
    ordered.order = Order{.order = program_order(problem), .method = "program order"};
  } else if (options.splitting) {
    Options half = options;
    half.limits.seconds = options.limits.seconds / 2;
    ordered = order(problem, half);
    result.lifetimes = ordered.report;
  } else {
    const OrderModel model(problem, options);
    ordered.order = to_order(model, options, std::nullopt, {}, problem);
  }
  if (!ordered.order) return result;

  Options rest = options;
  rest.limits.seconds = std::max(0.0, watch.left());
  bool placed = true;
  Plan best = assemble(
      problem, ordered.order->order, options.in_place, [&](const std::vector<Buffer>& buffers) {
        LayoutResult found = layout(buffers, rest);
        result.locations = found.report;
        placed = found.layout.has_value();
        return placed ? std::move(found.layout->offsets) : Offsets(buffers.size());
      });
  if (!placed) return result;
  best.bound = options.reorder ? ordered.order->bound : best.load;
  best.method = ordered.order->method;
  best.seconds = watch.seconds();
  result.plan = std::move(best);
  return result;
}

}  // namespace tidemark::planner::olla
