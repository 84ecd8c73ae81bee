// Edits of a sequence of runs: the steps that ruin and repair are made of.
//
// An edit may leave a sequence that is over budget or in conflict: evaluate it. A rider always
// stays directly behind its parent.
//
// Threads: a Moves belongs to one. Options and Random must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/remat/edit_evaluation.h"
#include "runtime/planner/remat/remat_random.h"

namespace tidemark::planner::remat {

class Moves {
 public:
  Moves(const Options& options, Random& random);

  // Finds what is live when the run at `at` starts, and where it is used next.
  void look_at(const Sequence& sequence, int32_t at);
  // Of the last look: the live values, and for each the next position that uses it.
  const std::vector<NodeId>& live() const { return live_; }
  int32_t next_use(NodeId u) const { return next_use_[u]; }
  // An evaluator that often has the sequences to edit as its anchor, for speed. Null: none.
  void use(const EditEvaluator* evaluator) { evaluator_ = evaluator; }

  // Computes `value` again right before `at`, and those of its inputs that are not live there
  // and that a coin chooses, recursively. False if that is impossible.
  bool compute_before(Sequence& sequence, int32_t at, NodeId value);
  // Runs the node at `at` by another option, chosen at random among those that do not use
  // `avoided` (if given). False if there is none.
  bool switch_option(Sequence& sequence, int32_t at, NodeId avoided = kNoNode);
  // Removes a run, together with its riders. Returns the number of runs removed.
  int32_t remove(Sequence& sequence, int32_t at);
  // After removals: lets riders that went along, and that are still read, follow the last run
  // of their parent before.
  void attach_left_riders(Sequence& sequence);
  // Moves a run, with its rider, to a random position within `reach`.
  void shift(Sequence& sequence, int32_t at, int32_t reach);
  // Moves a run without riders to a random position, where its inputs are computed again as by
  // compute_before(). False if that is impossible.
  bool relocate(Sequence& sequence, int32_t at);
  // Where a run may be inserted so that it comes before the run at `at`.
  int32_t insertion(const Sequence& sequence, int32_t at) const;
  bool is_rider(const Sequence& sequence, int32_t at) const {
    return options_.rider_of(sequence[at]) != kNoNode;
  }

 private:
  int32_t attach_riders(Sequence& sequence, int32_t at, OptionId option);
  bool add_to_block(NodeId value, int depth);
  bool add_inputs(OptionId option, int depth);
  OptionId choose_option(NodeId node);
  double price(OptionId option) const;
  void find_at_hand(const Sequence& sequence, int32_t at);
  bool is_at_hand(NodeId u) const { return at_hand_[u] != 0 || in_block_[u] != 0; }

  const Options& options_;
  Random& random_;
  std::vector<NodeId> live_;
  std::vector<int32_t> next_use_;  // by node
  std::vector<int32_t> seen_;      // by node: stamp_live_, stamp_dead_ or older
  int32_t stamp_live_ = 0, stamp_dead_ = 0;
  std::vector<double> again_time_;  // by node: of its fastest later run
  const EditEvaluator* evaluator_ = nullptr;
  std::vector<uint8_t> at_hand_;   // by node: live where the edit is
  std::vector<uint8_t> in_block_;  // by node
  Sequence block_;
  double recompute_chance_ = 0.5;
  std::vector<OptionId> left_riders_;
};

}  // namespace tidemark::planner::remat
