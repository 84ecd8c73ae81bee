// A plan for steps like one that was captured, checked and ready to be followed.
//
//   |  what lives on from step to step, packed  |  everything else, at planned offsets  |
//   0                                           base                          base + peak
//
// `base` may be another in another step; offsets count from it.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/step_graph.h"
#include "runtime/planner/planner.h"

namespace tidemark {

struct PlannedStep {
  StepGraph graph;
  std::vector<uint32_t> order;                     // of graph.ops
  bool in_program_order = true;                    // nothing has to be put off
  std::vector<std::optional<Bytes>> storage_at;    // from base; none: lives on, or unused
  std::vector<std::optional<Bytes>> workspace_at;  // by operator
  Bytes peak{0};                                   // of everything above base
  Bytes bound{0};                                  // no plan has less
  double seconds = 0;                              // that planning took
  std::string method;
};

// Plans and checks. Throws UsageError if the graph cannot be planned (why_not_plannable()), and
// for a plan that the validator objects to, which is a bug.
PlannedStep plan_captured_step(StepGraph graph, const planner::PlannerOptions& options);

}  // namespace tidemark
