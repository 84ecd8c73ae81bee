// Assigns each weight update to a segment (ROAM, section IV-A, "Memory-aware Scheduler for
// Weight updates").
//
//   esti_pm    = sum of all activations' sizes                                           (4)
//   mem_atvs_t = sum of the activations that may be alive at timestep t                  (5)
//   mem_used_t = mem_atvs_t + alpha * size_grad                                          (6)
//
// A branch is delayed to the next segment while both
// - its gradients are larger than `delay_radius` times the mean tensor, and
// - mem_used_t > esti_pm, where t is the earliest timestep at which it can run there.
// An operator's earliest and latest timesteps are the numbers of operators that must come
// before and after it (an operator of a segment comes before the next segment, unless it
// floats). An activation may be alive from its writer's earliest timestep to its last reader's
// latest one.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/roam/phases.h"

namespace tidemark::planner::roam {

enum class UpdatePlacement : uint8_t {
  kScheduled,  // as above
  kAtOnce,     // in the segment in which its gradients are available
  kLast,       // after the backward pass
};

struct UpdateOptions {
  UpdatePlacement placement = UpdatePlacement::kScheduled;
  // Memory of an optimizer while it runs, in sizes of its gradient: 3 for Adam built of single
  // operators. 0: taken from each branch.
  double alpha = 0;
  // "Determined empirically" in the paper, without a value. Ours was chosen by hand, among a
  // few values, on the paper's networks with Adam unfused, the same that our tables show: no
  // others were held back. With 1, an update of a small batch waits until the step's end,
  // because its gradients outweigh all activations.
  double delay_radius = 8;
  // Not in the paper: operators that only make the branch's gradients (such as a weight's
  // gradient apart from the input's) wait with it.
  bool with_gradients = false;
};

// Gradients wait with their updates, which suits a smaller radius.
inline UpdateOptions gradients_that_wait() {
  UpdateOptions options;
  options.delay_radius = 3;
  options.with_gradients = true;
  return options;
}

// Moves the operators of branches, and those after them, to later segments in `phases.segment`.
void place_updates(const OrderGraph& graph, const UpdateOptions& options, Phases& phases);

}  // namespace tidemark::planner::roam
