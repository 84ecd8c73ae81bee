// Brings a sequence within the budget, run by run, and relieves runs whose variants are slow
// for lack of memory.
//
// At a run that is over budget, a few edits are tried: a value that is live there but not used
// is computed again before its next use, or its next user is switched to an option that does
// without; or the run itself is switched. The edit that removes most bytes for the time that it
// adds is kept.
//
// Threads: a Repair belongs to one. Options, Moves and Random must outlive it.
#pragma once

#include "runtime/planner/remat/edit_evaluation.h"
#include "runtime/planner/remat/remat_moves.h"

namespace tidemark::planner::remat {

// A sequence with its evaluation.
struct Draft {
  Sequence sequence{};
  Evaluation evaluation{};
};

class Repair {
 public:
  Repair(const Options& options, Moves& moves, Random& random);

  // What settle() expects drafts to differ little from, for speed only.
  void start_from(const Draft& draft);
  // Evaluates a draft, resolves conflicts over overwritten values, and drops idle runs. False
  // if another conflict remains.
  bool settle(Draft& draft) { return settle(draft, start_); }
  // Repairs until the draft is feasible. False if it gets stuck or slower than `limit`.
  bool run(Draft& draft, double limit);
  // Tries edits at the run at `at`, as if it were over budget, and takes the best if the result
  // is feasible and faster.
  bool relieve(Draft& draft, int32_t at);
  // Removes random runs as long as that gives a feasible and no slower draft.
  void prune(Draft& draft, int attempts);

  // Counts calls that need no evaluation too, so that every loop over them ends.
  int64_t evaluations() const { return start_.count() + now_.count() + calls_; }
  // A run of the draft that was passed to start_from().
  const Run& run(int32_t at) const { return start_.run(at); }

 private:
  bool settle(Draft& draft, EditEvaluator& evaluator);
  bool attempt(const Draft& draft, int32_t at);
  void work_on(const Draft& draft);
  int32_t overfull_run(const Draft& draft);
  bool edit(Sequence& sequence, int32_t at, const std::vector<NodeId>& candidates,
            const std::vector<int32_t>& next_use);
  bool step(Draft& draft);
  void find_candidates(const Sequence& sequence, int32_t at);

  const Options& options_;
  Moves& moves_;
  Random& random_;
  EditEvaluator start_, now_;
  int64_t calls_ = 0;
  std::vector<NodeId> candidates_;
  std::vector<int32_t> next_use_;  // by candidate
  Draft trial_, best_;
};

}  // namespace tidemark::planner::remat
