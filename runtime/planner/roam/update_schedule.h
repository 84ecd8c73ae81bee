// Into which segment each weight update goes (ROAM, section IV-A, "Memory-aware Scheduler for
// Weight updates").
//
//   esti_pm    = sum of all activations' sizes                                           (4)
//   mem_atvs_t = sum of the activations that may be alive at timestep t                  (5)
//   mem_used_t = mem_atvs_t + alpha * size_grad                                          (6)
//
// A branch is put off to the next segment while both
// - its gradients are larger than `delay_radius` times the mean tensor, and
// - mem_used_t > esti_pm, t being the earliest timestep at which it can run in that segment.
// The earliest and latest timesteps of an operator are given by the numbers of those that must
// come before and after it (an operator of a segment comes before the next segment, unless it
// floats); an activation may be alive from the earliest of its writer to the latest of its last
// reader.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/roam/phases.h"

namespace tidemark::planner::roam {

enum class UpdatePlacement : uint8_t {
  kScheduled,  // as above
  kAtOnce,     // in the segment in which its gradients are there
  kLast,       // after the backward pass
};

struct UpdateOptions {
  UpdatePlacement placement = UpdatePlacement::kScheduled;
  // What an optimizer takes while it runs, in sizes of its gradient: 3 for an Adam of single
  // operators. 0: taken from each branch.
  double alpha = 0;
  // "Determined empirically" in the paper, without a value. 30 gives the least peaks over the
  // networks of bench/plan_networks.py, taken together: with 1 an update of a small batch waits
  // for the end of the step, as its gradients outweigh all activations.
  double delay_radius = 30;
};

// Moves the operators of branches, and what comes after them, to later segments in
// `phases.segment`.
void place_updates(const OrderGraph& graph, const UpdateOptions& options, Phases& phases);

}  // namespace tidemark::planner::roam
