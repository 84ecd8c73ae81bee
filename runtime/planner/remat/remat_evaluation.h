// The cost of a sequence of runs. Frees are implied: a value is dropped after its last use
// before its node runs again. Runs that nothing needs are idle: they count for nothing.
//
// One pass backward finds the values live at each run, one pass forward the memory, the
// variants and the time: O(runs x inputs).
//
// Threads: an Evaluator belongs to one. The Options must outlive it.
#pragma once

#include <cstdint>
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
};

struct Evaluation {
  Conflict conflict = Conflict::kNone;
  int32_t at = -1;         // of the conflict; otherwise the run most over budget, or -1
  NodeId value = kNoNode;  // of the conflict
  bool has_idle = false;   // there are idle runs
  int64_t overflow = 0;    // sum over runs of the bytes over budget
  double time = 0;

  bool feasible() const { return conflict == Conflict::kNone && overflow == 0; }
};

class Evaluator {
 public:
  explicit Evaluator(const Options& options);

  Evaluation evaluate(const Sequence& sequence);

  // Of the last evaluation without a conflict, by position. Idle runs have no choice.
  bool is_idle(int32_t at) const { return idle_[at] != 0; }
  const Choice& choice(int32_t at) const { return *choice_[at]; }
  int64_t slack(int32_t at) const { return slack_[at]; }  // bytes for the choice's need

  // Removes the runs that the last evaluation, of this sequence, found idle.
  void drop_idle(Sequence& sequence) const;

 private:
  Evaluation find_lives(const Sequence& sequence);
  Place find_place(OptionId option) const;
  void find_cost(const Sequence& sequence, Evaluation& result);

  const Options& options_;
  std::vector<uint8_t> needed_;  // by node
  std::vector<uint8_t> ran_;     // by node
  int required_ = 0;             // the number of nodes that must run
  std::vector<uint8_t> first_;   // by position: the first of a node that must run
  std::vector<uint8_t> idle_;    // by position
  std::vector<int64_t> before_;  // by position: bytes live when the run starts
  std::vector<Place> place_;     // by position
  std::vector<int64_t> slack_;
  std::vector<const Choice*> choice_;
};

// The schedule of a sequence without conflicts, frees as early as possible.
Schedule to_schedule(const Options& options, const Sequence& sequence);

}  // namespace tidemark::planner::remat
