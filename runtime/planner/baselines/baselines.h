// What others do: plans to compare with, and never to be worse than.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/planner/plan.h"

namespace tidemark::planner {

struct MemoryNoteOptions {
  bool in_place = true;
  bool sharing = true;
  // A block is taken again if its size is within this factor of what is asked for. Sharing
  // across any sizes would let a small value hold a large block.
  int64_t match_range = 16;
};

// MXNet's memory note: walks the program once with a counter per storage of the uses to come.
// - In place: where a pair allows it and the counter says that this operator is the last to
//   use the input, the output takes the input's block.
// - Sharing: at 0 a storage's block goes into a box, from which a later one may take it; a
//   block is as large as the largest that ever lay in it.
// Blocks lie side by side: there are no two parts of a block in use at one time.
Plan memory_note(const Problem& problem, const MemoryNoteOptions& options);

struct Baseline {
  std::string name;
  bool reorders = false;  // its order is not the program's
  bool in_place = false;
  bool quick = false;                        // close to linear in the size of the problem
  Freedom freedom = Freedom::kIssueOrder;    // of its plans: others do not compare with it
  std::function<Plan(const Problem&)> plan;  // its bound is 0: it proves nothing
};

// Program order: unshared, in place, sharing, both; then with reference counts and online best
// fit, greedy by size, LLFB; then LESCEA's order with best fit and with greedy by size; last,
// for any number of streams, the note's path colouring, ancestors, and both laid out
// (streams.h).
const std::vector<Baseline>& baselines();

}  // namespace tidemark::planner
