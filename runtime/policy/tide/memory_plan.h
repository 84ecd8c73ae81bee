// All of a step's memory, decided ahead: what is released when and how, when copies come back,
// and where each block lies. What a script (step_script.h) follows.
//
//   StepTable --draft--> releases --search--> better ones --rehearse--> blocks --> offsets
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/policy/tide/step_rehearsal.h"

namespace tidemark {

struct MemoryPlan {
  MemoryEvents memory;
  std::vector<Offset> offsets;    // of memory.blocks at first; empty: they lie anywhere
  std::vector<MemoryMove> moves;  // in order
  Bytes moved{0};                 // with what the next step has to put back
  // Blocks that are there all the time and are none of the step's.
  std::vector<Block> strangers;
  std::vector<PlannedRelease> releases;  // what it came from
  StepRehearsal::Outcome expected;
  bool placed() const { return !offsets.empty(); }
};

// How hard to look: some seconds, or a fifth of one, where all of it is used up. In calls
// that rehearsals go through, so that a plan is the same on every machine.
inline constexpr int64_t kThorough = 48'000'000;
inline constexpr int64_t kQuick = 2'000'000;

// Within limits.room, all that there is. `strangers`: sizes. `draft`: a plan to begin with, for
// a step like it; empty: none.
//
// With a place for each block where a layout is found, in which few blocks move. Else they are
// slid together whenever the room is in pieces. None: nothing was found that fits.
//
// `taken`, if given: what it took is added, in calls gone through and what takes as long.
std::optional<MemoryPlan> make_memory_plan(const StepTable& step, const PlanLimits& limits,
                                           const std::vector<Bytes>& strangers,
                                           std::vector<PlannedRelease> draft = {},
                                           int64_t effort = kThorough,
                                           int64_t* taken = nullptr);

}  // namespace tidemark
