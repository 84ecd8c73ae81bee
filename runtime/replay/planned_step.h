// A plan for steps like one that was captured, checked and ready to be followed.
//
//   |  what lives on from step to step, packed  |  everything else, at planned offsets  |
//   0                                           base                          base + peak
//
// `base` may be another in another step; offsets count from it.
//
// Threads: values, no state; `there` is the issuing thread's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/planner/planner.h"
#include "runtime/replay/planned_memory.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct PlannedStep {
  StepTrace graph;
  std::vector<uint32_t> order;                     // of graph.ops
  bool in_program_order = true;                    // nothing has to be put off
  std::vector<std::optional<Bytes>> storage_at;    // from base; none: lives on, or unused
  std::vector<std::optional<Bytes>> workspace_at;  // by operator
  Bytes peak{0};                                   // of everything above base
  Bytes bound{0};                                  // no plan has less
  double seconds = 0;                              // that planning took
  std::string method;
  // Of steps that release, in program order: what goes and comes, and every block's place.
  // Above this is unused then, but for the graph.
  std::optional<PlannedMemory> memory{};
  std::vector<IntrusivePtr<Storage>> there{};  // memory's items that live on; null for others
};

// By graph and trace. Throws UsageError as plan_memory() does, or if steps like it have no
// plan.
PlannedStep plan_releasing_step(StepTrace graph, MemoryTrace trace, Bytes capacity,
                                const LinkRates& links, const planner::Limits& limits);

// Plans and checks. Throws UsageError if the graph cannot be planned (why_not_plannable()), and
// for a plan that the validator objects to, which is a bug.
PlannedStep plan_captured_step(StepTrace graph, const planner::PlannerOptions& options);

}  // namespace tidemark
