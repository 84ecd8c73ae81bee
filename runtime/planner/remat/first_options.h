// How each node runs first if memory did not matter: the order, and the fastest option.
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/remat/remat_options.h"

namespace tidemark::planner::remat {

struct FirstOptions {
  std::vector<NodeId> order{};      // the nodes that are needed, a rider after its parent
  std::vector<OptionId> option{};   // by node; kNoOption if the node is not needed
  std::vector<int32_t> position{};  // by node, in `order`; -1 if it is not needed
  bool complete = true;             // false: some required node has no option that fits
};

FirstOptions choose_first_options(const Options& options, FirstOrder order);

}  // namespace tidemark::planner::remat
