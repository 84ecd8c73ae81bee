#include "runtime/planner/bounds/time_bound.h"

#include <algorithm>
#include <vector>

#include "runtime/planner/bounds/idle_gaps.h"
#include "runtime/planner/bounds/linear_program.h"
#include "runtime/planner/bounds/step_program.h"

namespace tidemark::planner {
namespace {

LinearBound solve(const StepProgram& step, const TimeBoundOptions& options) {
  Limits limits;
  limits.seconds = LinearProgram::kUnbounded;
  limits.nodes = options.iterations;
  limits.stop = options.stop;
  return best_bound(step.program(), limits);
}

}  // namespace

std::optional<StepTimes> time_bound(const StepTrace& trace, const PlanLimits& limits,
                                    const TimeBoundOptions& options) {
  if (trace.ops.empty()) return StepTimes{};
  const IdleGaps step(trace);
  const int64_t budget = limits.space.count();
  if (step.most_used() > budget) return std::nullopt;
  double added = 0;
  for (const uint32_t most : options.looked_at) {
    const std::vector<uint32_t> fullest = step.fullest(budget, most);
    if (fullest.empty()) continue;
    added = std::max(added, solve(StepProgram(step, limits, fullest), options).bound);
  }
  const double ample = step.total() + step.upload_wait(limits.in_bandwidth / 1e3);
  const auto nanos = [](double ms) { return Nanos(static_cast<int64_t>(ms * 1e6)); };
  // Rounding errors of the sums above are far below this share.
  return StepTimes{nanos(ample), std::max(nanos(ample), nanos((ample + added) * (1 - 1e-9)))};
}

}  // namespace tidemark::planner
