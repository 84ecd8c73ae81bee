#include "runtime/planner/papers/roam_programs.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/papers/olla/lifetime_program.h"
#include "runtime/planner/papers/olla/location_program.h"
#include "runtime/planner/papers/olla/olla.h"

namespace tidemark::planner::roam {
namespace {

// Solvers' tolerances suit numbers of about this size.
constexpr double kWellScaled = 1000;

double unit_for(Bytes bytes) {
  return std::max(1.0, static_cast<double>(bytes.count()) / kWellScaled);
}

double in_units(Bytes bytes, double unit) { return static_cast<double>(bytes.count()) / unit; }

// The better of LESCEA's order and the program's.
std::vector<OpId> first_order(const Problem& leaf) {
  std::vector<OpId> order = program_order(leaf), other = lescea(leaf);
  if (peak_load(leaf, other) < peak_load(leaf, order)) order = std::move(other);
  return order;
}

// Timesteps by program (14), beginning with `start`, which is the answer if no better one is
// found in time.
std::vector<int> solve_timesteps(const Problem& leaf, const olla::Graph& graph,
                                 const olla::Spans& spans, std::vector<int> start,
                                 bool one_per_step, const Limits& limits,
                                 const Solver& solver) {
  const Stopwatch watch(limits.seconds);
  if (olla::LifetimeProgram::term_count(graph, spans) > olla::kMaxTerms) return start;
  const Bytes least = load_bound(leaf);
  if (olla::peak_of(graph, spans.steps, start) <= least.count()) return start;
  const double unit = unit_for(std::max(least, Bytes(1)));
  olla::LifetimeProgram lifetimes(graph, spans, one_per_step, unit);
  Program& program = lifetimes.program();
  program.variables[lifetimes.peak()].lower = in_units(least, unit);
  program.start = lifetimes.solution(start);
  const Solution solution =
      solve(program, {.seconds = std::max(0.0, watch.left()), .seed = limits.seed}, solver);
  return solution.values.empty() ? start : lifetimes.timesteps(solution.values);
}

std::vector<OpId> order_leaf(const Problem& leaf, const Limits& limits, const Solver& solver) {
  std::vector<OpId> order = first_order(leaf);
  const olla::Graph graph(leaf);
  const auto steps = static_cast<int>(order.size());
  std::vector<int> start(order.size());
  for (int t = 0; t < steps; ++t) start[order[t]] = t;
  const std::vector<int> timesteps = solve_timesteps(
      leaf, graph, olla::make_spans(graph, steps, true), start, true, limits, solver);
  std::sort(order.begin(), order.end(),
            [&](OpId a, OpId b) { return timesteps[a] < timesteps[b]; });
  return order;
}

std::vector<int> timesteps_of_leaf(const Problem& leaf, const Limits& limits,
                                   const Solver& solver) {
  const olla::Graph graph(leaf);
  const olla::Spans spans = olla::make_spans(graph, olla::depth(graph), true);
  const auto peak_of = [&](const std::vector<int>& timesteps) {
    return olla::peak_of(graph, spans.steps, timesteps);
  };
  return solve_timesteps(leaf, graph, spans,
                         peak_of(spans.asap) <= peak_of(spans.alap) ? spans.asap : spans.alap,
                         false, limits, solver);
}

Offsets lay_out_leaf(const LayoutLeaf& leaf, const Limits& limits, const Solver& solver) {
  const Stopwatch watch(limits.seconds);
  const std::vector<Buffer>& buffers = leaf.buffers;
  Offsets best = stacked(leaf);
  const Bytes top = height(buffers, best), load = max_load(buffers);
  olla::LocationOptions options;
  options.ceilings = leaf.ceilings;
  options.limit = top;
  options.bound = load;
  options.unit = unit_for(load);
  if (top == load || olla::LocationProgram::term_count(buffers, options) > olla::kMaxTerms) {
    return best;
  }
  olla::LocationProgram locations(buffers, options);
  locations.program().start = locations.solution(best);
  const Solution solution =
      solve(locations.program(), {.seconds = std::max(0.0, watch.left()), .seed = limits.seed},
            solver);
  if (solution.values.empty()) return best;
  Offsets found = locations.offsets(solution.values);
  return height(buffers, found) < top ? found : best;
}

}  // namespace

LeafSolvers program_leaves(Streams streams, const Solver& solver) {
  LeafSolvers leaves;
  leaves.layout = [solver](const LayoutLeaf& leaf, const Limits& limits) {
    return lay_out_leaf(leaf, limits, solver);
  };
  if (streams == Streams::kOne) {
    leaves.order = [solver](const Problem& leaf, const Limits& limits) {
      return order_leaf(leaf, limits, solver);
    };
  } else {
    leaves.timesteps = [solver](const Problem& leaf, const Limits& limits) {
      return timesteps_of_leaf(leaf, limits, solver);
    };
  }
  return leaves;
}

}  // namespace tidemark::planner::roam
