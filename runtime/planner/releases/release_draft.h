// Plans which storages to release during a step, and how, in the least time, from the record of
// a step that repeats.
//
// Between two uses of a storage is a gap, in which it need not be resident. The plan chooses
// gaps until the live bytes fit at every call:
//
//   bytes   ____                     first copies that the link carries out and back while
//    live  /    \___  <- limit       compute continues, of the storages that cost most per byte
//      ___/         \                to recompute; then evictions, least time per byte and call
//     forward   backward             first (including recomputations that they cause).
//
// Greedy with lazy evaluation: choosing gaps only raises other gaps' prices and lowers their
// benefit. Choices made needless by later ones are undone.
//
// Pure: no session, no tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/plan_limits.h"
#include "runtime/schedule/step_table.h"

namespace tidemark::planner {

// Drafts leave out items smaller than this share (1/n) of the space.
inline constexpr int64_t kSmallestGap = 4096;

// Items whose recomputation takes more than this share (1/n) of the step are not evicted by
// drafts. Their sources are gone, as those of a gradient are, and what the sources need would
// not fit.
inline constexpr int64_t kMaxRecomputeShare = 16;

// Calls between two uses, in which an item need not be resident.
//
//   calls        0 . . . . n           from, to
//   persistent   --u====u===u--        two of its uses
//                =======u---u==        the last, the first: across the step's end, in two parts
//   carried in   =======u---u          as above: only the part before the first use
//                       u---u====      the last use, n: kept only for recipes
//   carried out        u---u====       the last use, n: until the end
struct Gap {
  uint32_t item = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  bool wraps() const { return to <= from; }
};

// Gaps of items of at least `smallest` bytes, ordered by item, then by call.
std::vector<Gap> find_gaps(const StepTable& step, Bytes smallest);

enum class Release : uint8_t { kEvict, kOffload };

struct PlannedRelease {
  uint32_t item = 0;
  uint32_t from = 0;  // may be released after this call
  uint32_t to = 0;    // needed by this call, as in a Gap
  Release action = Release::kEvict;
  uint32_t reload_at = 0;  // for offloads: brought back after this call
  // Of a gap that wraps, of what lives through: copied out after `from`, so that the next step
  // begins without it. Off: copied out as the step begins, if all else has space then.
  bool leaves_before_end = false;
  bool wraps() const { return to <= from; }
  bool operator==(const PlannedRelease&) const = default;
};

// Whether a call of the step writes the item in place.
bool is_written(const StepTable& step, uint32_t item);

// Whether leaves_before_end may pay: the gap wraps, its item lives through, and if it is
// written, a copy out after its last use would be done before the step's end if the link is
// free.
bool can_leave_before_end(const StepTable& step, const PlanLimits& limits,
                          const PlannedRelease& release);

struct ReleaseDraft {
  std::vector<PlannedRelease> releases;  // by `from`
  Bytes unmanaged{0};                    // most bytes live at once
  Bytes peak{0};                         // most bytes live at once under the plan
  Nanos recomputation{0};                // for the whole step, as expected at each choice
};

ReleaseDraft draft_releases(const StepTable& step, const PlanLimits& limits);

}  // namespace tidemark::planner
