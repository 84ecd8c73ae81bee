// A schedule for a step that does not fit in any order without releases: what is released, and
// in which of some orders the step then takes the least time.
//
//   orders     program's    the least peak's    updates first
//   probe      +35 %        +1.6 %              +1.7 %           an eighth of the effort each
//   search                  +1.5 %                               all of it
//
// Another order than the program's is taken only where it is quicker by more than searches
// differ by chance, and looked at only where it lowers the step's peak.
//
// Threads: functions without state.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/planner/releases/release_planner.h"

namespace tidemark::planner {

struct OrderedReleases {
  Schedule schedule;                     // of the trace as it is
  std::vector<uint32_t> order;           // of its operators; empty: the program's
  std::vector<PlannedRelease> releases;  // by calls of the step in that order
};

// Orders in which the step's peak is lower than in the program's, by some part of what that is
// above the room: `planned`, if it is not empty, and that of updates_first().
std::vector<std::vector<uint32_t>> orders_to_try(const StepTrace& trace,
                                                 const PlanLimits& limits,
                                                 const std::vector<Bytes>& foreign,
                                                 const std::vector<uint32_t>& planned);

// As plan_releases(), in the program's order or in one of `orders`; with a draft in its order.
std::optional<OrderedReleases> plan_releases_in_order(
    const StepTrace& trace, const PlanLimits& limits, const std::vector<Bytes>& foreign,
    const std::vector<std::vector<uint32_t>>& orders,
    const std::optional<OrderedReleases>& draft = std::nullopt, int64_t effort = kThorough,
    int64_t* work = nullptr, const std::atomic<bool>* stop = nullptr);

}  // namespace tidemark::planner
