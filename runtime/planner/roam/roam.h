// ROAM's own method: divides a step, plans each piece separately, and combines the results (Shu
// et al., "ROAM: memory-efficient large DNN training via optimized operator ordering and memory
// layout").
//
//   section   here                  what
//   IV-A      phases.h              memory-insensitive operators, independent segments
//   (4)-(6)   update_schedule.h     into which segment each weight update goes
//   IV-C      subgraph_tree.h       Algorithm 1: independent and dependent subgraphs
//   (1)-(3)   roam.cc               each leaf's order by itself; the orders one after the other
//   (8), (9)  layout.h              each leaf's layout; layouts concatenated, conflicts settled
//   IV-D      leaf_solver.h         who solves a leaf
//
// Nothing of the default planner is used except to solve leaves: the result is ROAM's own even
// where ours is better, and its method says so.
//
// One stream (the paper's ROAM-SS), or several (ROAM-MS) if the leaves' solver gives timesteps:
// the order then lists the operators of one timestep side by side, and what they use lives from
// the timestep's first position on, so none of it shares a byte. In-place pairs are not part of
// the paper; `in_place` merges them before the layout, as the default planner does (on one
// stream).
//
// Threads: roam() starts some and ends them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/plan.h"
#include "runtime/planner/planner.h"
#include "runtime/planner/roam/leaf_solver.h"
#include "runtime/planner/roam/subgraph_tree.h"
#include "runtime/planner/roam/update_schedule.h"

namespace tidemark::planner::roam {

// Each `bool` is an ingredient that can be left out.
struct RoamOptions {
  // Seconds: half of them for orders. Nodes: per leaf and per search.
  Limits limits{.nodes = 20'000};
  int threads = 0;       // 0: one per core; the plan does not depend on the number
  bool segments = true;  // off: one order for the whole step
  bool tree = true;      // off: each segment is ordered alone; one layout for all
  TreeOptions subgraphs;
  UpdateOptions updates;
  bool owners = true, activations_below = true, concatenate = true;  // layout.h
  bool in_place = false;
  LeafSolvers leaves = exact_leaves();
  // A leaf may take the time left, divided by the leaves left. Off: all of it.
  bool divide_time = false;
};

// The paper's parameters, where they differ from the defaults.
struct Parameters {
  std::optional<int> node_limit;                          // subgraph_tree.h
  std::optional<double> delay_radius, delay_coefficient;  // update_schedule.h
};

// Throws UsageError if check_problem() does; std::logic_error if a leaf's solver does not
// return each operator once, or returns an offset below zero; and any exception from a solver.
Plan roam(const Problem& problem, const RoamOptions& options = {});

// As above for several streams, with the timestep of each operator. `plan` is as valid as any.
// That operators of one timestep may run at the same time is what it promises beyond that:
// with_barriers() says so in the validator's terms, under Freedom::kOperators. REQUIRES:
// options.leaves.timesteps.
struct TimestepPlan {
  Plan plan;
  std::vector<int> timesteps;  // per operator
};
TimestepPlan roam_in_timesteps(const Problem& problem, const RoamOptions& options);

// The problem with control edges from all operators of a timestep to all of the next one.
Problem with_barriers(const Problem& problem, const std::vector<int>& timesteps);

// ROAM's order alone.
std::vector<OpId> roam_order(const Problem& problem, const RoamOptions& options = {});

// ROAM's layout alone, for any order. REQUIRES: `order` is valid.
Plan roam_layout(const Problem& problem, const std::vector<OpId>& order,
                 const RoamOptions& options = {});

// For papers/methods.h: `mine` with limits as given there, but at most the nodes above. With
// `reorder` off, only the layout is ROAM's.
Plan roam_method(const Problem& problem, const PlannerOptions& options,
                 const Parameters& parameters = {}, RoamOptions mine = {});

// ROAM with one ingredient changed, to measure its value; the last three are not in the paper.
struct Ablation {
  std::string name;  // as in papers/methods.h
  std::string what;
  std::function<void(RoamOptions&)> change;
};
const std::vector<Ablation>& ablations();
Plan roam_without(const Ablation& ablation, const Problem& problem,
                  const PlannerOptions& options, const Parameters& parameters = {});

}  // namespace tidemark::planner::roam
