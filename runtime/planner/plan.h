// What a planner answers: in which order operators run and where each storage lies.
//
// Time is a position in the order: operator order[t] runs in [t, t + 1). The order is the one
// in which operators are issued; where two streams use the same bytes one after the other,
// whoever runs the plan makes the later one wait, unless the plan is made so that none has
// to (`freedom`).
//
// Threads: values, no state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/problem.h"

namespace tidemark::planner {

// A storage (not an alias) or an operator's workspace, at a place for a time. A storage has
// one, from its first use to its last; once plans release and bring back (`Action`), it has one
// for each time that it is resident.
struct Placement {
  StorageId storage = kNone;  // this one is set,
  OpId workspace_of = kNone;  // or this
  int64_t begin = 0;
  int64_t end = 0;  // half-open
  Bytes size{0};
  Offset offset;
};

// Between which operators bytes may pass without one waiting for the other for the bytes' sake
// alone. What shares bytes under the latter two never makes one stream wait for another.
enum class Freedom : uint8_t {
  kIssueOrder,  // any: whoever runs the plan makes the later one wait
  kStreams,     // those that data or control edges order, or that are issued on one stream
  kOperators,   // those that data or control edges order
};

struct Plan {
  std::vector<OpId> order;
  std::vector<Placement> placements;
  // Pairs of the problem that were made use of: their two placements may share bytes while that
  // operator runs.
  std::vector<InPlace> in_place;

  Freedom freedom = Freedom::kIssueOrder;  // what it promises; the validator holds it to that

  Bytes load{0};   // most bytes live at one time
  Bytes peak{0};   // highest end of a placement: what the arena must have
  Bytes bound{0};  // no plan of the problem has a lower peak
  double seconds = 0;
  std::string method;  // which planner won

  // How far the peak may be above the least: 0.01 is one per cent.
  double gap() const {
    if (bound <= Bytes(0)) return peak > Bytes(0) ? 1 : 0;
    return static_cast<double>((peak - bound).count()) / static_cast<double>(bound.count());
  }
};

}  // namespace tidemark::planner
