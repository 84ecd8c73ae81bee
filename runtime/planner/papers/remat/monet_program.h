// MONeT's 0-1 program (sections 3 and 4, appendices B and C of the paper), built for a problem
// that two_pass.h reads as a forward and a backward pass.
//
//   s[t,i]  forward value i is stored during stage t     paper: s^{k-1}_i; stage 0: s^N_i
//   r[t,i]  forward i runs again before stage t's node   paper: r^k_i
//   d[t,i,l], d[k,l]  implementation l is used           paper: delta^k_{i,l}, ^delta_{k,l}
//   p[t,i], q[t,i]  kept, in place                       paper: p^k_i, q^k_i (C.3)
//   o[t,i]  s[t,i] and some chosen implementation of the stage's node reads i
//                                                        paper: sigma_{k,l,s} (C.4)
// The paper counts stages down, k = N ... 1; here t counts up, so s^k is s[t-1] and s^{k-1} is
// s[t]. M is the budget, N(i) the inputs of i, D(k,l) the forward inputs of backward k.
//
//   minimise  sum of time * d over all three kinds of runs                               (9)
//   sum over l of d[0,i,l] = 1,  of d[t,i,l] = r[t,i],  of d[k,l] = 1                  (sec. 4)
//   m_i    = c_i + |x_i| + sum over L_i + sum of j < i, not in L_i: s[0,j] |x_j|   <= M   (1)
//   ^m_k   = ^c_k + |y_k| + |^L_k| + |D(k,l) and S^{k-1}|                           <= M (2, 5)
//   ~m_R   = r c_i + r |x_i| + |^L_k| + sum of j < i, not in L: (s[t,j] or in D) |x_j|
//            + r * sum of L + sum of j > i: s[t-1,j] |x_j|                      <= M (3, 6, 12)
//   ~m_S   = the same without i's own run                                         <= M (13)
//   M from (4); L by appendix B: {x_j : j in N(u), j < i <= u}, u in the stage's window
//   r[t,i] <= s[t-1,j] + p[t,j]  for j in N(i);   s[t,i] <= s[t-1,i] + p[t,i]             (7)
//   d[k,l] <= s[t,i] + p[t,i]    for i in D(k,l)                                          (8)
//   p[t,j] >= r[t,j] - 2 q[t,i],  p[t,j] <= 2 - 2 q[t,i],  s[t,j] <= 2 - 2 q[t,i],
//   p <= r,  q <= r              where i overwrites j                                  (C.3)
//   o >= s + d - 1,  o <= s,  o <= d                                                   (C.4)
//
// Differences from the text:
// - (7) is printed with s^{k-1} and s^{k-2} where s^k and s^{k-1} are meant: as printed, a
//   value that is made before backward k could be stored until later without being counted in
//   (2). The authors' program has the indices used here.
// - (7) and (8) sum over the implementations that read a value: the same 0-1 solutions, but
//   tighter.
// - |D and S| is sum of s + d - o, with o only for values that some implementation reads and
//   some does not. The same number, with fewer variables than sigma.
// - Where the memory rows would have very many terms, the sums of s[t,j] |x_j| over j < i are
//   variables, each one value more than the one before. The solutions are the same; small
//   programs are solved more slowly so, large ones could not be read by the solver in time.
// - C.3 lets a run in place read what it overwrites (it would forbid itself otherwise) and adds
//   r[t,u] + q[t,i] <= 1 for u > i that reads the same value.
// - (13) is implied by the rest where no workspace is negative, and is left out unless asked
//   for.
// - Implementations may differ in their forward inputs, and in the first and later runs. Riders
//   (the paper's intermediate storage nodes) run only directly after their node, at most one.
//
// Threads: one object, one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/papers/remat/linear_sum.h"
#include "runtime/planner/papers/remat/run_sequence.h"
#include "runtime/planner/papers/remat/two_pass.h"

namespace tidemark::planner::remat {

struct MonetOptions {
  bool workspace = true;     // off, workspaces count as 0: what (1) to (6) lose without them
  bool stored_rows = false;  // (13)
  bool tight_local = true;   // appendix B's second bound; off, the first, of the experiments
  int64_t most_terms = 20'000'000;        // of the rows; more take solvers' memory
  int64_t most_direct_terms = 1'000'000;  // of memory rows; above, sums are variables
};

class MonetProgram {
 public:
  // Throws UsageError if the rows have more than most_terms terms.
  MonetProgram(const TwoPass& passes, int64_t budget, const MonetOptions& options);

  const Program& program() const { return program_; }
  // The runs of a solution: the forward pass, then each stage's.
  std::vector<PlannedRun> decode(const std::vector<double>& values) const;

 private:
  // What the rows say of a forward step in a stage, as sums of variables.
  struct Cell {
    std::vector<LinearSum> ways{};  // d[t,i,l], by position in Step::first or again
    LinearSum ran{};                // r[t,i]
    LinearSum kept{};               // p[t,i]
    LinearSum stored{};             // s[t,i]
    LinearSum read{};               // sum of d[k,l] over l whose D has i
    LinearSum both{};               // o[t,i]
    std::vector<int> overwriters{};
  };

  const std::vector<Way>& ways_of(size_t t, int i) const;
  double scaled(int64_t bytes) const { return static_cast<double>(bytes) / unit_; }
  double workspace_of(const Way& way) const;
  LinearSum in_place(size_t t, int i, int j) const;  // q[t,i], of ways that overwrite j
  void at_most(const char* equation, LinearSum sum, double limit);
  int add_timed(const char* name, double time);

  void add_implementations(size_t t, int i);
  void add_backward(size_t t);
  void add_kept(size_t t);
  void add_riders(size_t t);
  void add_checkpoint_rows(size_t t);
  void add_in_place_rows(size_t t);
  void add_forward_memory();
  void add_recomputation_memory(size_t t);
  void add_stored_memory(size_t t);
  void add_backward_memory(size_t t);
  void add_sums(size_t t);
  LinearSum held(size_t t, int j) const;  // s or in D, of stage t
  LinearSum held_below(size_t t, int i) const;
  bool is_local(size_t t, int i, int j) const;

  const TwoPass& passes_;
  const MonetOptions options_;
  double unit_ = 1, limit_ = 0;
  int64_t terms_ = 0;
  Program program_;
  std::vector<std::vector<Cell>> cells_;  // by stage and forward step
  bool sums_are_variables_ = false;
  std::vector<std::vector<LinearSum>> sums_;      // [t][i]: sum of j < i of s[t,j] |x_j|
  std::vector<std::vector<LinearSum>> backward_;  // by position - forward, and way
};

}  // namespace tidemark::planner::remat
