// Published simple methods, to compare plans with; our plans are never worse.
//
// Threads: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "runtime/planner/plan.h"

namespace tidemark::planner {

struct MemoryNoteOptions {
  bool in_place = true;
  bool sharing = true;
  // A block is reused if its size is within this factor of the request. Sharing across any
  // sizes would let a small value hold a large block.
  int64_t match_range = 16;
};

// MXNet's memory note: walks the program once, counting each storage's remaining uses.
// - In place: where a pair allows it and this operator is the last to use the input, the
//   output takes the input's block.
// - Sharing: when the count is 0, the storage's block goes into a pool for later storages; a
//   block is as large as the largest storage it ever held.
// Blocks lie side by side: no two parts of a block are in use at one time.
Plan memory_note(const Problem& problem, const MemoryNoteOptions& options);

// PyTorch: program order, each storage and workspace allocated when its operator runs and freed
// after its last use, by a model of the caching allocator (caching_allocator.h). The peak is
// what the allocator reserves; nothing is in place. A block that other streams use returns to
// its own when they are done with it.
Plan pytorch_plan(const Problem& problem,
                  Bytes max_split_size = Bytes(std::numeric_limits<int64_t>::max()));

// Blocks that methods like this one hand out: placement k has the block block[k], of the size
// size[block[k]].
inline constexpr size_t kNoBlock = SIZE_MAX;
void place_side_by_side(Plan& plan, const std::vector<size_t>& block,
                        const std::vector<Bytes>& size);

struct Baseline {
  std::string name;
  bool reorders = false;  // its order differs from the program's
  bool in_place = false;
  bool quick = false;                        // close to linear in the size of the problem
  bool only_compared = false;                // plan_step() does not try it
  Freedom freedom = Freedom::kIssueOrder;    // of its plans; only equal ones compare
  std::function<Plan(const Problem&)> plan;  // its bound is 0: nothing is proven
};

// Program order: unshared, in place, sharing, both; then with reference counts and online best
// fit, greedy by size, LLFB; then LESCEA's order with best fit, greedy by size, and LLFB
// (ROAM's heuristic baseline, only compared); last, for any number of streams, the note's path
// colouring, ancestors, and both laid out (streams.h); and PyTorch.
const std::vector<Baseline>& baselines();

}  // namespace tidemark::planner
