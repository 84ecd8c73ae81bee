// Schedules in which given calls run as variants, in place where they can, nothing is computed
// again, and all is kept until its last use.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/remat/problem_from_step.h"
#include "runtime/planner/remat/step_schedule.h"
#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/schedule.h"
#include "runtime/schedule/schedule_validator.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark::testing {

// Of a call with so many variants: which one runs; 0: the call itself.
using ChooseVariant = std::function<uint32_t(const StepTrace::Op& op)>;

// A producer for PlanOptions. It adds to `chosen` the variants that its schedule runs.
inline auto forced_variants(const ChooseVariant& choose, int64_t* chosen) {
  return [choose, chosen](const StepTrace& trace, const PlanLimits& limits,
                          const std::vector<Bytes>& foreign) -> std::optional<Schedule> {
    const auto step = planner::remat::problem_from_step(trace);
    std::vector<planner::remat::PlannedRun> runs;
    for (planner::remat::NodeId i = 0; i < step.problem.size(); ++i) {
      const std::vector<uint32_t>& offered = step.variant_of[i];
      const bool is_rider = step.problem.nodes[i].rider_of != planner::remat::kNoNode;
      const uint32_t wanted = is_rider ? 0 : choose(trace.ops[step.op_of[i]]);
      const auto at = std::find(offered.begin(), offered.end(), wanted);
      // Not offered: it reads what no schedule can keep.
      runs.push_back({i, at == offered.end() ? 0 : static_cast<int32_t>(at - offered.begin())});
    }
    // In place, one after the other, unless a later variant reads what would be overwritten.
    for (planner::remat::NodeId i = 0; i < step.problem.size(); ++i) {
      const std::vector<uint32_t>& offered = step.variant_of[i];
      int32_t& variant = runs[i].variant;
      const auto next = static_cast<size_t>(variant) + 1;
      if (next == offered.size() || offered[next] != offered[next - 1]) continue;
      ++variant;
      if (!decode_runs(step.problem, runs).fault.empty()) --variant;
    }
    auto made = schedule_from_runs(trace, step, schedule_runs(step.problem, runs).events,
                                   limits, foreign);
    EXPECT_TRUE(made.schedule) << made.why_not;
    if (!made.schedule) return std::nullopt;
    for (const std::string& fault : schedule_violations(trace, limits, *made.schedule, 3))
      ADD_FAILURE() << fault;
    *chosen += std::count_if(made.schedule->code.begin(), made.schedule->code.end(),
                             [](const auto& it) { return it.variant != 0; });
    return std::move(made.schedule);
  };
}

}  // namespace tidemark::testing
