// Sharing that never makes one stream wait for another (MXNet's memory note, "Allocation for
// Parallel Operations").
//
//   A1 -> A2 -> A3 ->         A2's bytes may become A4's, never A6's: that would make the lower
//   |                 A8      branch wait for the upper one.
//   A5 -> A6 -> A7 ->
//
// Two storages share bytes only if each user of one is an ancestor of the other's producer: by
// data and control edges, and under Freedom::kStreams also by the issue order on one stream.
// Operators run in program order.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/plan.h"

namespace tidemark::planner {

enum class StreamSharing : uint8_t {
  // The note's method: colours paths, longest first, and reuses a block only along one path.
  // A value with users off its path gives its block to none.
  kPaths,
  kAncestors,  // blocks as in memory_note(), reused by any descendant of all their users
  kOffsets,    // no blocks: largest first, each at its lowest possible offset
};

struct StreamOptions {
  Freedom freedom = Freedom::kStreams;  // not kIssueOrder
  StreamSharing sharing = StreamSharing::kOffsets;
  bool in_place = true;
  int paths = 64;            // number coloured; values on no coloured path share nothing
  int64_t match_range = 16;  // as in MemoryNoteOptions
};

// The plan states options.freedom. kPaths: O(paths * uses). Others: O(operators * uses / 64),
// and O(storages^2) for kOffsets; with more than kMaxOpsForBound operators they share nothing.
Plan stream_safe(const Problem& problem, const StreamOptions& options = {});

}  // namespace tidemark::planner
