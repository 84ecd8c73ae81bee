#include "runtime/planner/bounds/time_bound.h"

#include <algorithm>
#include <vector>

#include "runtime/planner/bounds/idle_gaps.h"
#include "runtime/planner/bounds/least_needs.h"
#include "runtime/planner/bounds/linear_program.h"
#include "runtime/planner/bounds/step_program.h"

namespace tidemark::planner {
namespace {

// The least time added, in milliseconds, and what uploads add before the first operator looked
// at.
double added_by(const StepProgram& step, const TimeBoundOptions& options) {
  Limits limits;
  limits.seconds = LinearProgram::kUnbounded;
  limits.nodes = options.iterations;
  limits.stop = options.stop;
  return step.wait() + best_bound(step.program(), limits).bound;
}

// `ample` of the step, in milliseconds.
double ample_of(const IdleGaps& step, const PlanLimits& limits) {
  return step.total() + step.upload_wait(limits.in_bandwidth / 1e3, step.calls());
}

Nanos nanos(double ms) { return Nanos(static_cast<int64_t>(ms * 1e6)); }

}  // namespace

Nanos ample_time(const StepTrace& trace, const PlanLimits& limits) {
  return trace.ops.empty() ? Nanos(0) : nanos(ample_of(IdleGaps(trace), limits));
}

std::optional<StepTimes> time_bound(const StepTrace& trace, const PlanLimits& limits,
                                    const TimeBoundOptions& options) {
  if (trace.ops.empty()) return StepTimes{};
  const StepTrace least = with_least_needs(trace);
  const IdleGaps step(least);
  const int64_t budget = limits.space.count();
  if (step.most_used() > budget) return std::nullopt;
  const Nanos ample = nanos(ample_of(step, limits));
  double added = ample_of(step, limits) - step.total();
  for (const uint32_t most : options.looked_at) {
    const std::vector<uint32_t> fullest = step.fullest(budget, most);
    if (fullest.empty()) continue;
    added = std::max(added, added_by(StepProgram(step, limits, fullest), options));
  }
  // Rounding errors of the sums above are far below this share.
  return StepTimes{ample_time(trace, limits),
                   std::max(ample, nanos((step.total() + added) * (1 - 1e-9)))};
}

}  // namespace tidemark::planner
