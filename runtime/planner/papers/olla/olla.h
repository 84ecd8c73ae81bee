// OLLA as published (Steiner et al., 2022: "OLLA: Optimizing the Lifetime and Location of
// Arrays to Reduce the Memory Usage of Neural Networks"): an integer program for the order of
// operators, then one for the offsets of tensors. Its five reductions are switches.
//
// published() turns off what the paper does not mention: a start solution, and bounds other
// than the solver's. The paper does not cover aliases, workspaces and in-place pairs either:
// graph.h models the first two; pairs are used once the order is known.
//
// Several operators may share a timestep. The program then counts all of them at once, and its
// report states that peak. A plan runs them one by one, so its load is at most that; its peak
// comes from that order's own layout.
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
  // As many as operators on the longest path ("ALAP(v) is the longest distance from v to an
  // output"). The smallest program; its least peak may exceed the least of all orders.
  kLevels,
  kOperators,   // as many as operators; several may share one: every order is possible
  kOnePerStep,  // as many as operators, one in each
};

struct Options {
  Limits limits;         // seconds: half for the order, the rest for the layout
  bool reorder = true;   // off: program order, and only a layout
  bool in_place = true;  // off: no pair of may_be_in_place is used
  Timesteps timesteps = Timesteps::kLevels;
  int more_timesteps = 0;  // beyond levels; the authors use 1 % more, rounded up

  // The reductions.
  bool spans = true;          // section 4.1
  bool precedence = true;     // 4.2
  bool early_updates = true;  // 4.3
  bool splitting = true;      // 4.4; off: program (9), for small graphs only
  bool pyramid = true;        // 4.5; with splitting

  // Beyond the paper.
  bool start = true;  // start from LESCEA or program order, and from a greedy layout
  bool bound = true;  // give the solver lower bounds on the load and on the layout

  std::optional<Solver> solver;  // none: require_solver()
};

// The paper's method, without our additions.
inline Options published() {
  Options options;
  options.start = options.bound = options.in_place = false;
  return options;
}

// A better solution of a program, as the solver's log tells (solver.h).
struct Improvement {
  double seconds = 0;  // from the start of the solver's call
  Bytes peak{0};       // by the program's terms
  Bytes bound{0};      // known by then; 0: none
};

// The outcome of one program.
struct Report {
  size_t variables = 0, integers = 0, rows = 0;
  double seconds = 0;
  SolveStatus status = SolveStatus::kUnknown;
  Bytes peak{0};   // of the program's solution; see above
  Bytes bound{0};  // for the program: with its timesteps, edges and offsets
  std::vector<Improvement> improvements;
  std::string solver;
  std::string note;    // why no solution was found or sought
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

// Larger programs are not built: no solver finishes them.
inline constexpr int64_t kMaxTerms = 4'000'000;

// Each program stops at its deadline with the best solution so far. With `start` a solution
// always exists, and no order is worse than LESCEA's and program order on the graph with its
// control edges. (Without these edges LESCEA may do better.) Throw UsageError without a solver,
// or if check_problem() does; DataError as solve().
OrderResult order(const Problem& problem, const Options& options);
LayoutResult layout(const std::vector<Buffer>& buffers, const Options& options);
PlanResult plan(const Problem& problem, const Options& options);

}  // namespace tidemark::planner::olla
