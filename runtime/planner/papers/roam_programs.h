// ROAM's leaves solved by integer programs, as published (section IV-D): the order by one "akin
// to the approach presented in" OLLA, program (14), the layout by one with an offset for each
// tensor, program (15).
//
// Each program is given a start and our lower bound, which the paper does not mention; without
// them, leaves of some dozens of operators end without a solution. The start is, for the order,
// the better of the program's and LESCEA's, on several streams the better of all operators as
// early and as late as possible; for the layout, a greedy one. If the start is at the bound, it
// is optimal and no solver is called. A leaf without a better solution in time keeps its start,
// so plans depend on the speed of the machine.
//
// Threads: solvers are processes of their own; the functions may be called from any thread.
#pragma once

#include "runtime/planner/papers/solver/solver.h"
#include "runtime/planner/roam/leaf_solver.h"

namespace tidemark::planner::roam {

enum class Streams : uint8_t {
  kOne,      // ROAM-SS: one operator in each timestep
  kSeveral,  // ROAM-MS: as many timesteps as operators on the leaf's longest path
};

LeafSolvers program_leaves(Streams streams, const Solver& solver);

}  // namespace tidemark::planner::roam
