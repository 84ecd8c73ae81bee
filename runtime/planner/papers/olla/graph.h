// A problem as OLLA sees it (section 3.1): operators are vertices, storages are edges (here:
// tensors) from the operator that creates them to those that use them, their sinks.
//
// Beyond the paper: a workspace is a tensor without sinks; a tensor may be there before the
// first operator (then it has no source and lives from timestep 0) or be kept after the last.
// Aliases are part of what they lie in. Whatever else must come before something, a control
// edge of the problem for instance, is a tensor of size 0, as in section 4.3.
//
// Threads: a graph is not changed after it is made; any thread may read it.
#pragma once

#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner::olla {

struct Tensor {
  int64_t size = 0;           // S_e
  OpId source = kNone;        // src(e); none: there at the start
  std::vector<OpId> sinks;    // snks(e), sorted, without the source
  bool kept = false;          // wanted after the last operator
  StorageId storage = kNone;  // what it is: this,
  OpId workspace_of = kNone;  // or this; or neither, for a control edge
};

struct Graph {
  explicit Graph(const Problem& problem);
  size_t op_count() const { return before.size(); }

  std::vector<Tensor> tensors;
  std::vector<std::vector<int>> fanin, fanout;  // per operator: tensors, fi(v) and fo(v)
  std::vector<std::vector<OpId>> before, next;  // per operator: neighbours
  std::vector<OpId> topological;
  // Storages that live throughout are no tensors: they take this, whatever the order.
  int64_t resident = 0;
};

// Longest distance, in operators, from one without predecessors; 0 for those.
std::vector<int> levels(const std::vector<std::vector<OpId>>& before,
                        const std::vector<OpId>& topological);
// The same towards one without successors.
std::vector<int> backward_levels(const Graph& graph);

}  // namespace tidemark::planner::olla
