// A step with one gap, and what the bound of a step's time adds to its calls.
#pragma once

#include <gtest/gtest.h>

#include "runtime/planner/bounds/time_bound.h"
#include "tests/support/trace_builder.h"

namespace tidemark::testing {

// s0 is of no use to the third call, which needs all of the space; then at once it is.
inline TraceBuilder away() {
  TraceBuilder step;
  const uint32_t s0 = step.call({}, 10'000'000, 4);
  const uint32_t s1 = step.call({s0}, 10'000'000, 4);
  const uint32_t s2 = step.call({s1}, 10'000'000, 4);
  step.call({s0, s2}, 1, 0);
  return step;
}

inline constexpr double kError = 10'000;  // of milliseconds

// What the bound adds to the step, in nanoseconds; -1: none.
inline double added_in_order(const TraceBuilder& builder, const PlanLimits& limits,
                             const planner::TimeBoundOptions& options = {}) {
  const StepTrace trace = builder.trace();
  const auto times = planner::time_bound(trace, limits, options);
  if (!times) return -1;
  EXPECT_EQ(times->ample, total_cost(trace));
  return static_cast<double>((times->least - times->ample).count());
}

}  // namespace tidemark::testing
