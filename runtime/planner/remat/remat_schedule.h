// What a rematerialisation planner decides: runs and frees, in order.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/remat_problem.h"

namespace tidemark::planner::remat {

struct Event {
  NodeId node = kNoNode;
  int32_t variant = kFree;  // of the node; kFree: its value is dropped

  static constexpr int32_t kFree = -1;
  bool is_run() const { return variant != kFree; }
  bool operator==(const Event&) const = default;
};

struct Schedule {
  std::vector<Event> events{};
  int64_t peak = 0;  // bytes
  double time = 0;
};

}  // namespace tidemark::planner::remat
