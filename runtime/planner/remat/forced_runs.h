// What every schedule must do: the nodes that run before the first run of another.
//
// Threads: immutable once made.
#pragma once

#include <vector>

#include "runtime/planner/remat/remat_options.h"

namespace tidemark::planner::remat {

class ForcedRuns {
 public:
  // Considers only variants that fit in the options' budget.
  explicit ForcedRuns(const Options& options);

  // Whether `earlier` runs before the first run of `later` in every schedule.
  bool is_before(NodeId earlier, NodeId later) const {
    return (before_[later][earlier / 64] >> (earlier % 64) & 1) != 0;
  }
  // The nodes that run in every schedule.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  bool has(NodeId i) const { return is_forced_[i] != 0; }
  // False: some of them cannot run within the budget.
  bool possible() const { return possible_; }
  // A longest chain of them, each forced before the next.
  std::vector<NodeId> chain() const;

 private:
  using Bits = std::vector<uint64_t>;
  bool narrow(const Options& options, NodeId i);

  std::vector<Bits> before_;  // by node; all ones for nodes that can never run
  std::vector<NodeId> nodes_;
  std::vector<uint8_t> is_forced_;
  bool possible_ = true;
};

}  // namespace tidemark::planner::remat
