// A schedule for a step that does not fit in any order without releases: chooses the releases,
// and the order in which the step then takes the least time.
//
//   orders     program's    the least peak's    updates first
//   probe      +35 %        +1.6 %              +1.7 %           an eighth of the effort each
//   search                  +1.5 %                               all of it
//
// Other orders than the program's are examined only if they lower the step's peak, and used
// only if they are quicker by more than the random variation of searches.
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
  Schedule schedule;            // for the original trace
  std::vector<uint32_t> order;  // of operators; empty: the program's
};

// By which schedules are compared: includes moves, and a shortfall as copied out and in again.
Nanos time_of_releases(const Schedule& schedule, const PlanLimits& limits);

// Short searches: the best schedule that they found, and the orders in which a long search may
// find a better one.
struct ReleaseProbes {
  std::optional<OrderedReleases> best{};
  std::vector<std::vector<uint32_t>> worth_searching{};
};

// Orders that lower the step's peak by some part of its excess over the space limit, from
// `planned`, if not empty, and updates_first().
std::vector<std::vector<uint32_t>> orders_to_try(const StepTrace& trace,
                                                 const PlanLimits& limits,
                                                 const std::vector<Bytes>& foreign,
                                                 const std::vector<uint32_t>& planned);

// One short search in the program's order and in each of `orders`; `effort` is that of the long
// search to come. Nothing is worth searching once `stop` is set.
ReleaseProbes probe_releases(const StepTrace& trace, const PlanLimits& limits,
                             const std::vector<Bytes>& foreign,
                             const std::vector<std::vector<uint32_t>>& orders,
                             int64_t effort = kThorough, int64_t* work = nullptr,
                             const std::atomic<bool>* stop = nullptr);

// As plan_releases(), in the best of `orders`; an empty one stands for the program's.
std::optional<OrderedReleases> plan_releases_in_order(
    const StepTrace& trace, const PlanLimits& limits, const std::vector<Bytes>& foreign,
    const std::vector<std::vector<uint32_t>>& orders, int64_t effort = kThorough,
    int64_t* work = nullptr, const std::atomic<bool>* stop = nullptr);

}  // namespace tidemark::planner
