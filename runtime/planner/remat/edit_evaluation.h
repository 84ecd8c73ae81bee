// The cost of a sequence that differs from another one, the anchor, in one range. Most edits of
// a search are small, so an evaluation that looks at the difference alone takes a fraction of
// the time of one in full.
//
//   anchor   [ prefix ][ old ][ suffix ]
//   edited   [ prefix ][ new   ][ suffix ]
//
// What is needed in the suffix is what the anchor needs there. The new range is evaluated in
// full, backward; then the prefix, but only as far as other values are needed than in the
// anchor, and there only the runs that touch such a value or whose variant no longer fits.
//
// Threads: an EditEvaluator belongs to one. The Options must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/remat_evaluation.h"

namespace tidemark::planner::remat {

class EditEvaluator {
 public:
  explicit EditEvaluator(const Options& options);

  // Evaluates in full. Later evaluations are relative to this sequence.
  Evaluation anchor(const Sequence& sequence);
  bool is_anchor(const Sequence& sequence) const { return sequence == anchor_; }
  // A run of the anchor. REQUIRES: it has no conflict.
  const Run& run(int32_t at) const { return anchored_.run(at); }
  // Whether the values needed when the run at `at` of this sequence starts are known at once;
  // sets them, by node, if so.
  bool needed_before(const Sequence& sequence, int32_t at, std::vector<uint8_t>& needed) const;

  // As Evaluator::evaluate(), up to rounding of the time.
  Evaluation evaluate(const Sequence& sequence);
  // Removes the runs that the last evaluation, of this sequence, found idle.
  void drop_idle(Sequence& sequence) const;

  // Evaluations of either kind so far.
  int64_t count() const { return count_; }

 private:
  void find_range(const Sequence& sequence);
  bool keeps_first_runs(const Sequence& sequence);
  bool find_new_lives(const Sequence& sequence);
  bool find_new_cost(const Sequence& sequence);
  bool walk_prefix(const Sequence& sequence);
  bool visit(int32_t k);
  bool leave_idle(int32_t k);
  bool use_inputs(int32_t k, Run& run);
  void set_difference(NodeId u, int value);
  void recost(const Run& before, const Run& after);
  bool fail(Conflict kind, int32_t at, NodeId value);

  const Options& options_;
  Evaluator anchored_, full_;
  Sequence anchor_;
  bool is_usable_ = false;  // the anchor has neither conflicts nor idle runs
  // By position of the anchor, and past its end: sums over the runs before.
  std::vector<double> time_;
  std::vector<int64_t> overflow_, fixed_;
  std::vector<int32_t> first_, last_;  // by node: runs of the anchor; -1: none

  // Of the evaluation under way.
  int32_t begin_ = 0, old_end_ = 0, new_end_ = 0;
  Evaluation result_;
  std::vector<Run> new_runs_;            // from begin_ on
  std::vector<uint8_t> needed_, other_;  // by node: in the edited sequence; in the anchor
  std::vector<int8_t> difference_;       // by node: 1 if needed, but not in the anchor; or -1
  int differences_ = 0;
  int64_t more_live_ = 0;        // bytes live, less those of the anchor
  bool rider_follows_ = false;   // the run behind is a rider that is not idle
  bool rider_left_ = false;      // the run behind was a rider in the anchor, and is none now
  std::vector<int64_t> in_new_;  // by node: stamp_ if it runs in the new range
  int64_t stamp_ = 0;
  std::vector<int32_t> idle_;  // positions, of the last evaluation, falling
  int64_t count_ = 0;
};

}  // namespace tidemark::planner::remat
