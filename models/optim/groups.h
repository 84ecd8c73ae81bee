// Decides which parameters, or gradients, one operator handles together.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

// Limits for grouped updates. Small parameters are grouped, because on a GPU their update takes
// less time than its launch. Large ones gain nothing, and all of a group must be on the device
// at once.
//
// Groups depend on the program alone, never on the budget, and no group is larger than the
// update of the largest single parameter. The smallest feasible budget is therefore the same as
// without groups. Values are bit-identical either way.
struct UpdateGroups {
  Bytes most_of_parameter{64 << 10};  // larger ones are updated alone; 0: all are
  Bytes most_of_group{1 << 20};       // parameters, gradients and state, as allocated
  size_t most_parameters = 32;        // limit of one launch on a GPU
};

struct GroupMember {
  Bytes bytes{0};      // resident for an operator on this member alone
  bool alone = false;  // never grouped, whatever its size
};

// Positions in `members`, group by group. The order is kept, except that small members may come
// after large ones that follow them. `may_join`: whether a member may join an open group.
std::vector<std::vector<size_t>> in_groups(
    std::span<const GroupMember> members, const UpdateGroups& limits,
    const std::function<bool(std::span<const size_t> open, size_t next)>& may_join);

}  // namespace tidemark
