#include "runtime/planner/papers/remat/run_sequence.h"

#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/remat/remat_validator.h"

namespace tidemark::planner::remat {

DecodedRuns decode_runs(const Problem& problem, const std::vector<PlannedRun>& runs) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> made_by(problem.nodes.size(), kNone);  // the run of each live value
  std::vector<size_t> last_use(runs.size());
  std::vector<char> is_overwritten(runs.size());
  for (size_t k = 0; k < runs.size(); ++k) {
    const Variant& variant =
        problem.nodes[runs[k].node].variants[static_cast<size_t>(runs[k].variant)];
    last_use[k] = k;
    for (const NodeId u : variant.inputs) {
      if (made_by[u] != kNone) last_use[made_by[u]] = k;
    }
    if (variant.overwrites != kNoNode && made_by[variant.overwrites] != kNone) {
      is_overwritten[made_by[variant.overwrites]] = 1;
    }
    made_by[runs[k].node] = k;
  }
  std::vector<std::vector<NodeId>> freed_after(runs.size());
  for (size_t k = 0; k < runs.size(); ++k) {
    if (is_overwritten[k] == 0) freed_after[last_use[k]].push_back(runs[k].node);
  }
  DecodedRuns decoded;
  Schedule& schedule = decoded.schedule;
  for (size_t k = 0; k < runs.size(); ++k) {
    schedule.events.push_back({runs[k].node, runs[k].variant});
    for (const NodeId u : freed_after[k]) schedule.events.push_back({u, Event::kFree});
  }
  Verdict verdict = validate(problem, schedule.events);
  decoded.fault = std::move(verdict.fault);
  schedule.peak = verdict.peak;
  schedule.time = verdict.time;
  return decoded;
}

Schedule schedule_runs(const Problem& problem, const std::vector<PlannedRun>& runs) {
  DecodedRuns decoded = decode_runs(problem, runs);
  TIDEMARK_CHECK(decoded.fault.empty(),
                 "a decoded schedule failed validation: " + decoded.fault);
  return std::move(decoded.schedule);
}

}  // namespace tidemark::planner::remat
