// How each node runs first: the order, and one option each, without regard to the rest.
//
// Threads: functions without state.
#pragma once

#include <vector>

#include "runtime/planner/remat/remat_options.h"

namespace tidemark::planner::remat {

enum class Preference : uint8_t {
  kFastest,
  kSmallest,  // the least bytes of inputs, value and workspace
};

struct FirstOptions {
  std::vector<NodeId> order{};      // the nodes that are needed, a rider after its parent
  std::vector<OptionId> option{};   // by node; kNoOption if the node is not needed
  std::vector<int32_t> position{};  // by node, in `order`; -1 if it is not needed
  bool complete = true;             // false: some required node has no option that fits
};

FirstOptions choose_first_options(const Options& options, FirstOrder order,
                                  Preference preference);

}  // namespace tidemark::planner::remat
