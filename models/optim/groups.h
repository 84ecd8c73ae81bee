// Which parameters, or gradients, go through one operator together.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

// Which parameters are updated by one operator. Small ones, whose update takes a GPU less time
// than its launch does; large ones gain nothing, and all of a group is on the device at once.
//
// Groups follow from the program alone, never from the budget, and none is larger than the
// update of the largest single parameter is: so the smallest feasible budget is as without
// them. Values are the same to the bit.
struct UpdateGroups {
  Bytes most_of_parameter{64 << 10};  // larger ones are updated alone; 0: all are
  Bytes most_of_group{1 << 20};       // parameters, gradients and state, as they lie in memory
  size_t most_parameters = 32;        // one launch on a GPU
};

struct GroupMember {
  Bytes bytes{0};      // that its operator has on the device by itself
  bool alone = false;  // whatever its size
};

// Positions in `members`, group by group: in order, but that small ones may come later than the
// large ones after them. `may_join`: whether one may go with those of an open group.
std::vector<std::vector<size_t>> in_groups(
    std::span<const GroupMember> members, const UpdateGroups& limits,
    const std::function<bool(std::span<const size_t> open, size_t next)>& may_join);

}  // namespace tidemark
