// Improves releases by simulating the step. The first phase is a downhill search: it changes
// one decision, or two that overlap in time, and keeps cheaper results until no change helps.
// The second phase is simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983), in rounds
// that each begin with the best plan so far. It also changes decisions about all layers of a
// kind at once, because a change that helps all layers seldom helps one alone.
//
// A change is dropped as soon as its simulation costs too much. The result is the same on every
// machine, because the limit is the number of simulated calls.
//
// Pure.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/planner/releases/release_draft.h"
#include "runtime/planner/releases/step_simulator.h"

namespace tidemark::planner {

// Changes that a round of annealing tries for each gap, at most.
inline constexpr int64_t kTries = 63;

struct SearchResult {
  std::vector<PlannedRelease> releases;  // by call
  StepSimulator::Outcome expected;
  int64_t calls = 0;  // simulated
};

// At least as good as `draft`. `effort`: the maximum number of simulated calls, a quarter of
// them downhill; as many again for small storages, if the others do not suffice.
// `expected.shortfall` is above 0 if no plan within the space limit was found. `stop`: ends the
// search soon once set; null: never set.
SearchResult search_releases(const StepTrace& trace, const StepTable& step,
                             const PlanLimits& limits, const std::vector<PlannedRelease>& draft,
                             int64_t effort, const std::atomic<bool>* stop = nullptr,
                             int64_t tries = kTries);

}  // namespace tidemark::planner
