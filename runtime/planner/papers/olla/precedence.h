// OLLA, section 4.2: pairs of tensors that are never in memory together need no constraints
// (6), (7a), (7b). Either condition suffices:
// - their MUL ranges do not overlap;
// - all sinks of one are in the transitive fanin of the other's source, and no operator both
//   uses the one and creates the other.
//
// Lossless.
//
// Threads: functions without state; a Precedence is not changed after it is made.
#pragma once

#include <vector>

#include "runtime/planner/order/bitset.h"
#include "runtime/planner/papers/olla/graph.h"
#include "runtime/planner/papers/olla/spans.h"

namespace tidemark::planner::olla {

class Precedence {
 public:
  // Function 2's answers for all pairs, as bit sets: O(operators * edges / 64).
  Precedence(const Graph& graph, const Spans& spans);
  // True if tensors i and j can never be live at one timestep.
  bool never_together(int i, int j) const;

 private:
  bool precedes(int i, int j) const;

  const Graph& graph_;
  const Spans& spans_;
  std::vector<Bitset> above_;  // per operator: its transitive fanin
};

}  // namespace tidemark::planner::olla
