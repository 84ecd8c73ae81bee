// Sharing that leaves streams free of each other (MXNet's memory note, "Allocation for Parallel
// Operations").
//
//   A1 -> A2 -> A3 ->         A2's bytes may become A4's, never A6's: that would make the lower
//   |                 A8      branch wait for the upper one.
//   A5 -> A6 -> A7 ->
//
// Two share bytes only if each user of the one is an ancestor of the other's producer: by data
// and control edges, and under Freedom::kStreams by the order in which a stream's operators are
// issued. The order is the program's.
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/plan.h"

namespace tidemark::planner {

enum class StreamSharing : uint8_t {
  // The note's: paths are coloured, the longest first, and a block is taken again only along
  // one path. Checked against the ancestors too: a value may have users beside the path.
  kPaths,
  kAncestors,  // blocks as in memory_note(), taken again by any descendant of all their users
  kOffsets,    // no blocks: largest first, each at the lowest place that it may have
};

struct StreamOptions {
  Freedom freedom = Freedom::kStreams;  // not kIssueOrder
  StreamSharing sharing = StreamSharing::kOffsets;
  bool in_place = true;
  int paths = 64;            // that are coloured; what is on none of them shares nothing
  int64_t match_range = 16;  // as in MemoryNoteOptions
};

// Its plan says options.freedom. Above kMaxOpsForBound operators ancestors are not looked up,
// and nothing is shared. O(operators * uses / 64), and O(storages^2) for kOffsets.
Plan stream_safe(const Problem& problem, const StreamOptions& options = {});

}  // namespace tidemark::planner
