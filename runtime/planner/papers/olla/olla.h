// OLLA as published (Steiner et al., 2022: "OLLA: Optimizing the Lifetime and Location of
// Arrays to Reduce the Memory Usage of Neural Networks"): when each operator runs, then where
// each tensor lies, each as an integer program. Its five reductions are switches.
//
// What is not in the paper is off in published(): it speaks of no solution to start from, and
// of no bound but the solver's. Aliases, workspaces and in-place pairs it does not know either:
// graph.h says how the first two are put; pairs are made use of once the order is known.
//
// Several operators may share a timestep. The program then charges for all of them at once, and
// that is the peak that its report states; a plan runs them one after the other, so its load is
// that or less, and its peak is of that order's own layout.
//
// Threads: functions without state; a solver is a process of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/limits.h"
#include "runtime/planner/order/order.h"
#include "runtime/planner/papers/solver/solver.h"
#include "runtime/planner/plan.h"

namespace tidemark::planner::olla {

enum class Timesteps : uint8_t {
  // As many as operators lie on the longest path ("ALAP(v) is the longest distance from v to an
  // output"). The smallest program; its least peak may be above the least of all orders.
  kLevels,
  kOperators,   // as many as operators, several of which may share one: every order is in it
  kOnePerStep,  // as many as operators, one in each
};

struct Options {
  Limits limits;         // seconds: half for the order, what is left for the places
  bool reorder = true;   // off: program order, and places for it
  bool in_place = true;  // off: no pair of may_be_in_place is made use of
  Timesteps timesteps = Timesteps::kLevels;
  int more_timesteps = 0;  // than levels; the authors' program has 1 % more, rounded up

  // The reductions.
  bool spans = true;          // section 4.1
  bool precedence = true;     // 4.2
  bool early_updates = true;  // 4.3
  bool splitting = true;      // 4.4; off: program (9), for small graphs only
  bool pyramid = true;        // 4.5; with splitting

  // Beyond the paper.
  bool start =
      true;  // begin with LESCEA or program order, and with a layout that fits greedily
  bool bound = true;  // tell the solver the least load that any order has, and any layout

  std::optional<Solver> solver;  // none: require_solver()
};

// As the paper has it, with nothing of ours.
inline Options published() {
  Options options;
  options.start = options.bound = options.in_place = false;
  return options;
}

// What became of one program.
struct Report {
  size_t variables = 0, integers = 0, rows = 0;
  double seconds = 0;
  SolveStatus status = SolveStatus::kUnknown;
  Bytes peak{0};   // of the program's solution; see above
  Bytes bound{0};  // the program has no better one: with its timesteps, edges and places
  std::string solver;
  std::string note;    // why there is no solution, or none was sought
  double gap() const;  // (peak - bound) / bound
};

struct OrderResult {
  std::optional<Order> order;  // none: no solution in time. Its bound holds for any order
  Report report;
};
struct LayoutResult {
  std::optional<Layout> layout;
  Report report;
};
struct PlanResult {
  std::optional<Plan> plan;  // its bound holds for any plan of the problem
  Report lifetimes, locations;
};

// Programs with more terms than this are not even written: no solver ends with them.
inline constexpr int64_t kMaxTerms = 4'000'000;

// Each stops at its deadline with the best solution so far. With `start` there always is one,
// and no order is worse than LESCEA's and program order on the graph with its control edges.
// (Without these edges LESCEA may well do better.) Throw UsageError without a solver, or if
// check_problem() does; DataError as solve().
OrderResult order(const Problem& problem, const Options& options);
LayoutResult layout(const std::vector<Buffer>& buffers, const Options& options);
PlanResult plan(const Problem& problem, const Options& options);

}  // namespace tidemark::planner::olla
