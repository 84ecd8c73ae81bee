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
// One stream (the paper's ROAM-SS). In-place pairs are not part of the paper; `in_place` merges
// them before the layout, as the default planner does.
//
// Threads: roam() starts some and ends them.
#pragma once

#include <functional>
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
};

// Throws UsageError if check_problem() does; std::logic_error if a leaf's solver does not
// return each operator once, or returns an offset below zero; and any exception from a solver.
Plan roam(const Problem& problem, const RoamOptions& options = {});

// ROAM's order alone.
std::vector<OpId> roam_order(const Problem& problem, const RoamOptions& options = {});

// ROAM's layout alone, for any order. REQUIRES: `order` is valid.
Plan roam_layout(const Problem& problem, const std::vector<OpId>& order,
                 const RoamOptions& options = {});

// For papers/methods.h: limits and in_place as given there, with at most the nodes above. With
// `reorder` off, only the layout is ROAM's.
Plan roam_method(const Problem& problem, const PlannerOptions& options);

// ROAM with one ingredient changed, to measure its value; the last two are not in the paper.
struct Ablation {
  std::string name;  // as in papers/methods.h
  std::string what;
  std::function<void(RoamOptions&)> change;
};
const std::vector<Ablation>& ablations();
Plan roam_without(const Ablation& ablation, const Problem& problem,
                  const PlannerOptions& options);

}  // namespace tidemark::planner::roam
