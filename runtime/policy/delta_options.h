// Parameters of DELTA (delta_policy.h), and of the policies made of its parts.
#pragma once

#include <cstdint>
#include <string>

namespace tidemark {

struct DeltaOptions {
  // Filter: "base" (the paper's choice, also used if empty), "lru", "greedy".
  std::string filter{};
  // Releases ahead of need once this share of the arena is in use, so that copies overlap
  // compute (Section 4.3: three quarters). 0: off. Best effort: storages used by the last
  // operator stay.
  double early_start = 0.75;
  // Prefetcher: the maximum number of storages prefetched and not yet used. 0: off.
  int prefetch = 4;
  // The paper's Assumption 2: nothing is released in backward, except as the last resort.
  bool assumption2 = false;
  // The paper's rule: a needed offloaded storage is recomputed if possible. Off: it is
  // recomputed or reloaded, whichever is cheaper.
  bool always_recompute = false;
  // Tide: the maximum work on one schedule (planner/releases/release_planner.h). 0: as much as
  // the steps are worth.
  int64_t plan_effort = 0;
};

}  // namespace tidemark
