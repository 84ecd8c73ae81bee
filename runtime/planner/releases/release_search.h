// Makes releases better by simulating the step with them. First downhill: one decision is
// changed, or two that meet in time, and what costs less is kept, until nothing helps any more.
// Then by simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983), which also changes
// decisions about all layers of a kind at once: what is right for one of them is seldom better
// alone.
//
// A change is dropped as soon as the simulation shows that it costs too much. The same on every
// machine: what bounds it is the number of calls gone through.
//
// Pure.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/planner/releases/release_draft.h"
#include "runtime/planner/releases/step_simulator.h"

namespace tidemark::planner {

struct SearchResult {
  std::vector<PlannedRelease> releases;  // by call
  StepSimulator::Outcome expected;
  int64_t calls = 0;  // gone through
};

// Better than `draft`, or the same. `effort`: calls to go through, in all simulations together,
// before it ends with what it has: a quarter of them downhill; as many again for small
// storages, where the others are not enough. `expected.shortfall` is above 0 if no plan was
// found that stays within the limits' room. `stop`: ends it soon once set; null: nobody sets
// it.
SearchResult search_releases(const StepTrace& trace, const StepTable& step,
                             const PlanLimits& limits, const std::vector<PlannedRelease>& draft,
                             int64_t effort, const std::atomic<bool>* stop = nullptr);

}  // namespace tidemark::planner
