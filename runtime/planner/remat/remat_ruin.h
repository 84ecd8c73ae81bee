// Ruin: edits that may leave a sequence over budget or in conflict, for repair to mend.
//
// Threads: a Ruin belongs to one. Options, Moves and Random must outlive it.
#pragma once

#include "runtime/planner/remat/remat_moves.h"

namespace tidemark::planner::remat {

class Ruin {
 public:
  Ruin(const Options& options, Moves& moves, Random& random);

  // One edit, of a random kind. False if it was impossible.
  bool apply(Sequence& sequence);

 private:
  int32_t any_run(const Sequence& sequence);
  void find_repeats(const Sequence& sequence);
  bool remove_some(Sequence& sequence);
  bool remove_stretch(Sequence& sequence, size_t most);
  bool keep_values(Sequence& sequence);
  bool shift_some(Sequence& sequence);
  bool drop_value(Sequence& sequence);

  const Options& options_;
  Moves& moves_;
  Random& random_;
  bool has_options_ = false;
  std::vector<int32_t> repeats_;  // positions of recomputations, ascending
  std::vector<uint8_t> marked_;   // by node
};

}  // namespace tidemark::planner::remat
