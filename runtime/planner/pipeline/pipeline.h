// How a step is planned, from first to last. A session runs the phases one by one, in the
// background, and follows the schedule of each as soon as it is there
// (executor/step_planner.h); plan_graph --tier runs them at once; bench/order_and_releases.cc
// takes their time.
//
//   order    the order and the layout with the least peak; if they fit, nothing else is done
//   first    short searches for releases, in the program's order and in orders of a lower peak
//   long     one with all of the effort, in the orders that are worth it; without a tier also a
//            search for what to compute again, in any order
//   bounds   the least time of any schedule, in the order of the one found and in any order
//
// Each phase counts its work in simulated calls, which do not depend on the machine, and ends
// soon after `stop` is set, if given.
//
// Threads: functions without state.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/planner/planner.h"
#include "runtime/planner/releases/releases_in_order.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::planner {

// Of the search for an order and its layout in a session.
inline constexpr int64_t kOrderNodes = 200'000;

// Of a search for releases of a step that takes that long, in simulated calls.
int64_t effort_for(Nanos step);

// Whether it fits is for the caller to compare: the schedule's peak says how much is needed.
// Throws std::logic_error if the plan is wrong.
Schedule plan_order(const StepTrace& trace, PlannerOptions options, int64_t* work = nullptr);

// `planned`: the order of plan_order(), if known. `reorder` off: in the program's order alone.
// `effort` is that of the long search to come.
ReleaseProbes plan_first_releases(const StepTrace& trace, const PlanLimits& limits,
                                  const std::vector<Bytes>& foreign,
                                  const std::vector<uint32_t>& planned, bool reorder,
                                  int64_t effort, int64_t* work = nullptr,
                                  const std::atomic<bool>* stop = nullptr);

// `orders`: ReleaseProbes::worth_searching. None: nothing was found that fits.
std::optional<Schedule> plan_long(const StepTrace& trace, const PlanLimits& limits,
                                  const std::vector<Bytes>& foreign,
                                  const std::vector<std::vector<uint32_t>>& orders,
                                  int64_t effort, int64_t* work = nullptr,
                                  const std::atomic<bool>* stop = nullptr);

struct TimeBounds {
  Nanos ample{0};      // the step in ample space
  Nanos least{0};      // of any schedule in the order of the one given
  Nanos any_order{0};  // of any schedule

  // Sets the fields that the schedule has for them.
  void write_to(Schedule& schedule) const;
};
// `fastest`: the limits with the highest rates that the link may have. None: a call alone needs
// more than the budget.
std::optional<TimeBounds> bound_time(const Schedule& schedule, const StepTrace& trace,
                                     const PlanLimits& fastest,
                                     const std::atomic<bool>* stop = nullptr);

// All phases but the bounds: the quickest schedule. None: nothing was found that fits.
std::optional<Schedule> plan_step_within(const StepTrace& trace, const PlanLimits& limits,
                                         const std::vector<Bytes>& foreign, int64_t effort,
                                         int64_t* work = nullptr);

}  // namespace tidemark::planner
