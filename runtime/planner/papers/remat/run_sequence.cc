#include "runtime/planner/papers/remat/run_sequence.h"

#include "runtime/core/errors.h"
#include "runtime/planner/remat/remat_validator.h"

namespace tidemark::planner::remat {

Schedule schedule_runs(const Problem& problem, const std::vector<PlannedRun>& runs) {
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
  Schedule schedule;
  for (size_t k = 0; k < runs.size(); ++k) {
    schedule.events.push_back({runs[k].node, runs[k].variant});
    for (const NodeId u : freed_after[k]) schedule.events.push_back({u, Event::kFree});
  }
  const Verdict verdict = validate(problem, schedule.events);
  TIDEMARK_CHECK(verdict.fault.empty(),
                 "a decoded schedule failed validation: " + verdict.fault);
  schedule.peak = verdict.peak;
  schedule.time = verdict.time;
  return schedule;
}

}  // namespace tidemark::planner::remat
