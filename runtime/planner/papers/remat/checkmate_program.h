// Checkmate's integer program (Jain et al., 2020, "Checkmate: Breaking the Memory Wall with
// Optimal Tensor Rematerialization", section 4), with its frontier-advancing stages.
//
//   R[t,i]       node i is computed in stage t          S[t,i]  its value is kept into stage t
//   U[t,k]       memory right after node k in stage t   C, M    times and sizes
//   FREE[t,i,k]  value i is freed after node k in stage t; i is k or an input of k
//
//   minimise  sum of C_i R[t,i]                                                          (1a)
//   R[t,j] <= R[t,i] + S[t,i]             for inputs i of j                              (1b)
//   S[t,i] <= R[t-1,i] + S[t-1,i]                                                        (1c)
//   S[first,i] = 0                                                                       (1d)
//   R[t,t] = 1,  R[t,i] = 0 for i > t,  S[t,i] = 0 for i >= t                      (8a to 8c)
//   U[t,0]   = fixed bytes + sum of M_i S[t,i]                                            (2)
//   U[t,k+1] = U[t,k] - freed(t,k) + R[t,k+1] M_{k+1},  0 <= U <= M                       (3)
//   freed(t,k)  = sum of M_i FREE[t,i,k] over k and its inputs                            (4)
//   FREE[t,i,k] = R[t,k] (1 - S[t+1,i]) product over users j > k of (1 - R[t,j])          (5)
//     by  hazards = 1 - R[t,k] + S[t+1,i] + sum over users j > k of R[t,j]:
//     1 - FREE <= hazards,  hazards <= kappa (1 - FREE)                                   (7)
//
// Nodes are numbered in the problem's listed order; (1e), that the last node runs, follows from
// (8a). Each node takes its first variant that is neither in place nor reads a rider's value,
// as Checkmate knows one implementation; nodes that nothing then needs are left out. A node
// with other variants for its first run has C by the kind of run, since stage i has node i's
// first. Nodes that may run once only have R[t,i] = 0 after their stage, and others after
// the stage of a node that comes after all their runs.
//
// Difference from the paper: U[t,k] plus the workspace of k stays within the budget if k runs.
// The paper counts no workspace; CheckmateOptions::workspace switches to that.
//
// Threads: one object, one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/planner/papers/remat/linear_sum.h"
#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/remat/remat_problem.h"

namespace tidemark::planner::remat {

struct CheckmateOptions {
  bool workspace = true;
  int64_t most_terms = 20'000'000;  // of the rows
};

class CheckmateProgram {
 public:
  // Throws UsageError if a node can only run as or with a rider, in place, or after one that is
  // listed behind it; and if the rows have more than most_terms terms.
  CheckmateProgram(const Problem& problem, int64_t budget, const CheckmateOptions& options);

  const Program& program() const { return program_; }
  std::vector<PlannedRun> decode(const std::vector<double>& values) const;

 private:
  struct Choice {
    int32_t variant = 0;
    std::vector<int> inputs{};  // positions
  };
  struct Item {
    NodeId node = kNoNode;
    double bytes = 0;
    double fixed_before = 0, fixed = 0;
    bool may_run_again = false;
    // That of the first node that comes after all its runs (Node::after).
    int last_stage = std::numeric_limits<int>::max();
    Choice first{}, again{};
  };

  void choose_nodes(const Problem& problem);
  Choice choose(const Problem& problem, NodeId node, When unsuitable) const;
  const Choice& choice(int t, int k) const {
    return t == k ? items_[k].first : items_[k].again;
  }
  void add_variables();
  void add_dependencies(int t);
  void add_memory(int t);
  LinearSum add_free(int t, int i, int k);
  void add(const char* equation, LinearSum sum, double lower, double upper);

  const Problem& problem_;
  const CheckmateOptions options_;
  double unit_ = 1, limit_ = 0;
  int64_t terms_ = 0;
  std::vector<Item> items_;
  std::vector<std::vector<LinearSum>> runs_, kept_;  // R and S by stage and item
  Program program_;
};

}  // namespace tidemark::planner::remat
