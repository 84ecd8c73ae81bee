// A first schedule: all nodes that are needed, in first_order(), with recomputation on demand.
// When a run lacks values, all runs that compute them again are planned together, in the order
// of the first runs. So the next use of each intermediate is known, and a recomputation
// proceeds from the values that are kept, segment by segment. What is evicted on the way is
// computed again by a plan of its own.
//
// When a run does not fit, values without a known use are evicted first, then live values by
// increasing
//
//   cost of computing again / (bytes ^ size_weight * distance of the next use ^ reach_weight),
//
// the score of dynamic tensor rematerialisation (Kirisame et al., 2021), with exponents and
// with the next use in place of the last. Variants are chosen in the simulation: a faster one
// that needs more workspace is taken if the evictions that it forces cost less.
//
// Threads: functions without state.
#pragma once

#include <optional>

#include "runtime/planner/remat/first_options.h"
#include "runtime/planner/remat/remat_evaluation.h"

namespace tidemark::planner::remat {

struct StartWeights {
  double size_weight = 1;
  double reach_weight = 1;
  FirstOrder order = FirstOrder::kAsListed;
  Preference preference = Preference::kFastest;  // of first runs
  double share = 1;  // of the budget that the simulation has; above 1 where it gets stuck
};

// Null if the simulation gets stuck. Deterministic. The sequence may still be over budget.
std::optional<Sequence> simulate_start(const Options& options, const StartWeights& weights);

// Every needed node once, by its preferred option, without regard to memory. Null if an option
// that fits in the budget is lacking.
std::optional<Sequence> keep_all(const Options& options, FirstOrder order,
                                 Preference preference);

}  // namespace tidemark::planner::remat
