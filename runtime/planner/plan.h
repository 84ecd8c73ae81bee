// The result of a planner: the order of operators and the offset of each storage.
//
// Time is a position in the order: operator order[t] runs in [t, t + 1). Operators are issued
// in this order. Where two streams use the same bytes one after the other, whoever runs the
// plan makes the later one wait, unless the plan's `freedom` rules such waits out.
//
// Threads: values, no state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner {

// A storage (not an alias) or an operator's workspace, at an offset for an interval of time:
// from the first use to the last, one placement each.
struct Placement {
  StorageId storage = kNone;  // set for a storage
  OpId workspace_of = kNone;  // set for a workspace
  int64_t begin = 0;
  int64_t end = 0;  // half-open
  Bytes size{0};
  Offset offset;
};

// Between which operators bytes may pass. Under kStreams and kOperators, sharing bytes never
// makes one stream wait for another.
enum class Freedom : uint8_t {
  kIssueOrder,  // any operators: whoever runs the plan makes the later one wait
  kStreams,     // operators ordered by data or control edges, or issued on one stream
  kOperators,   // operators ordered by data or control edges
};

struct Plan {
  std::vector<OpId> order;
  std::vector<Placement> placements;
  // Pairs of the problem that are in place: their two placements may share bytes while that
  // operator runs.
  std::vector<InPlace> in_place;

  Freedom freedom = Freedom::kIssueOrder;  // promised sharing, checked by the validator

  Bytes load{0};   // most bytes live at one time
  Bytes peak{0};   // highest end of a placement: the arena's minimum size
  Bytes bound{0};  // no plan of the problem has a lower peak
  double seconds = 0;
  std::string method;  // the planner that made the plan

  // Relative distance of the peak from the bound: 0.01 is one per cent.
  double gap() const {
    if (bound <= Bytes(0)) return peak > Bytes(0) ? 1 : 0;
    return static_cast<double>((peak - bound).count()) / static_cast<double>(bound.count());
  }
};

}  // namespace tidemark::planner
