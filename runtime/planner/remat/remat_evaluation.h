// The cost of a sequence of runs. Frees are implied: a value is dropped after its last use
// before its node runs again. Runs that nothing needs are idle: they count for nothing.
//
// One pass backward finds the values live at each run, one pass forward the memory, the
// variants and the time: O(runs x inputs).
//
// Threads: an Evaluator belongs to one. The Options must outlive it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/planner/remat/remat_options.h"

namespace tidemark::planner::remat {

using Sequence = std::vector<OptionId>;

enum class Conflict : uint8_t {
  kNone,
  kMissing,      // a value is used that no earlier run computes
  kOverwritten,  // the run at `at` overwrites `value`, which a later run uses
  kOccasion,     // no variant of the run at `at` may be a first (a later) run
  kRider,        // the rider at `at` does not follow its parent
  kLate,         // the run at `at` stands behind a node that comes after all runs of `value`
};

struct Evaluation {
  Conflict conflict = Conflict::kNone;
  int32_t at = -1;         // of the conflict
  NodeId value = kNoNode;  // of the conflict
  bool has_idle = false;   // there are idle runs
  int64_t overflow = 0;    // sum over runs of the bytes over budget
  double time = 0;

  bool feasible() const { return conflict == Conflict::kNone && overflow == 0; }
};

// How one run stands in an evaluated sequence.
struct Run {
  const Choice* choice = nullptr;
  int64_t slack = 0;  // bytes for the choice's need
  int64_t over = 0;   // bytes over budget
  // Its choice stays the same, and fits, while low <= slack < high. Empty if it does not fit.
  int64_t low = 0, high = 0;
  int64_t before = 0;      // bytes live when it starts
  uint64_t last_uses = 0;  // bit j < 64: no later run uses input j
  Place place = kNotInPlace;
  bool is_idle = false;
  bool is_first = false;  // the first of a node that must run: it is never idle
  bool again = false;     // its node has run before
  bool needed = false;    // its value is used later

  // Chooses the variant for `bytes` of slack. False if none may run here.
  bool choose(const Options& options, OptionId option, int64_t bytes);
};

class Evaluator {
 public:
  explicit Evaluator(const Options& options);

  Evaluation evaluate(const Sequence& sequence);
  // The first conflict of kind kLate, of idle runs too: they are few.
  Evaluation find_late(const Sequence& sequence);

  // Of the last evaluation without a conflict. Idle runs have no choice.
  const Run& run(int32_t at) const { return runs_[at]; }
  // The values needed when the run at `at` starts, by node. REQUIRES: no run is idle.
  void needed_before(const Sequence& sequence, int32_t at, std::vector<uint8_t>& needed) const;

 private:
  Evaluation find_lives(const Sequence& sequence);
  void find_cost(const Sequence& sequence, Evaluation& result);

  const Options& options_;
  std::vector<uint8_t> needed_;  // by node
  std::vector<uint8_t> ran_;     // by node; in find_late(): may not run any more
  int required_ = 0;             // the number of nodes that must run
  std::vector<Run> runs_;        // by position
  // Copies of needed_ when every kCopyEvery-th run starts, by position / kCopyEvery.
  static constexpr int32_t kCopyEvery = 16;
  std::vector<std::vector<uint8_t>> copies_;
};

// Which input a run may overwrite, given the values needed after it.
template <typename Needed>
Place find_place(const Options& options, OptionId option, const Needed& is_needed) {
  const NodeId a = options.may_overwrite(option, 0), b = options.may_overwrite(option, 1);
  if (a != kNoNode && !is_needed(a)) return kOverFirst;
  return b != kNoNode && !is_needed(b) ? kOverSecond : kNotInPlace;
}

// The schedule of a sequence without conflicts, frees as early as possible.
Schedule to_schedule(const Options& options, const Sequence& sequence);

}  // namespace tidemark::planner::remat
