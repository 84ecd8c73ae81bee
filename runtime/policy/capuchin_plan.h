// Capuchin's plan (Peng et al., 2020, Section 4.4): made once, from the accesses of one
// measured step. A candidate is a storage between two accesses that follow each other, if
// memory is short on the way.
//
//   access   copy out   |<-- free time -->|   copy in   access
//     ^ evicted-access                                     ^ back-access
//
// 1. Swaps, most free time first, while a copy can be hidden. Each direction of the link
// carries
//    one copy at a time, so free time counts from when the link is free.
// 2. While memory is still short (Algorithms 1 and 2): the swap that compute would wait for the
//    least, or the recomputation with the highest MSPS = bytes / recomputation time, whichever
//    takes less time. A recomputation counts its sources that are away by then, and what
//    earlier choices would have to run again for it.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/schedule/step_table.h"

namespace tidemark {

struct CapuchinPlan {
  struct Release {
    uint32_t item = 0;
    uint32_t after = 0;   // the call that is the evicted-access
    uint32_t before = 0;  // the call that is the back-access
    bool swap = false;    // else it is recomputed at its back-access
    // Of a swap, in the step's time: when its copy out is done, and when its copy in starts;
    // and how long the latter takes.
    Nanos out{0}, in_trigger{0}, copy_in{0};
  };
  std::vector<Release> releases{};
  bool suffices = true;  // memory is not short anywhere, by the plan
  // Candidates, copies, calls and their inputs looked at (Effort::examined()). At the limit,
  // which only programs of many thousand calls reach, the plan ends short.
  static constexpr int64_t kMaxExamined = 30'000'000;
  int64_t examined = 0;
};

struct CapuchinCosts {
  Bytes capacity{0};
  bool may_swap = false;  // there is a tier
  std::function<Nanos(Bytes)> copy_out, copy_in;
};
CapuchinPlan capuchin_plan(const StepTable& step, const CapuchinCosts& costs);

}  // namespace tidemark
