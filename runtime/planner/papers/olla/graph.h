// A problem as OLLA sees it (section 3.1): operators are vertices, storages are edges (here:
// tensors) from the operator that creates them to those that use them, their sinks.
//
// Beyond the paper: a workspace is a tensor without sinks; a tensor may exist before the first
// operator (then it has no source and lives from timestep 0) or be kept after the last. Aliases
// are part of their storage. Any other precedence, such as a control edge of the problem, is a
// tensor of size 0, as in section 4.3.
//
// Threads: a graph is not changed after it is made; any thread may read it.
#pragma once

#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner::olla {

struct Tensor {
  int64_t size = 0;           // S_e
  OpId source = kNone;        // src(e); kNone: exists at the start
  std::vector<OpId> sinks;    // snks(e), sorted, without the source
  bool kept = false;          // needed after the last operator
  StorageId storage = kNone;  // the tensor's storage,
  OpId workspace_of = kNone;  // or its operator; neither for a control edge
};

struct Graph {
  explicit Graph(const Problem& problem);
  size_t op_count() const { return before.size(); }

  std::vector<Tensor> tensors;
  std::vector<std::vector<int>> fanin, fanout;  // per operator: tensors, fi(v) and fo(v)
  std::vector<std::vector<OpId>> before, next;  // per operator: neighbours
  std::vector<OpId> topological;
  // Bytes of storages that live throughout: not tensors, part of every load.
  int64_t resident = 0;
};

// Longest distance, in operators, from an operator without predecessors; 0 for such operators.
std::vector<int> levels(const std::vector<std::vector<OpId>>& before,
                        const std::vector<OpId>& topological);
// Longest distance to an operator without successors.
std::vector<int> backward_levels(const Graph& graph);

}  // namespace tidemark::planner::olla
