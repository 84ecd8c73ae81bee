// OLLA, section 3.2 and program (14): when each operator runs, as an integer program.
//
//   minimise peak_no_frag                                                            (14)
//   X[v,t] + P[e,t] <= 1                            v = src(e)                        (1)
//   P[e,t] <= P[e,t-1] + X[v,t-1]                                                     (2)
//   sum over t of X[v,t] = 1                                                          (3)
//   X[v,t] <= P[f,t]                                for f in fi(v)                    (4)
//   peak_no_frag >= sum over e of S_e (X[src(e),t] + P[e,t])      for each t         (13)
//
// The paper's C[e,t] is X[src(e),t] here: one variable for all outputs of an operator, which
// implies (5); operators without outputs have one too. Spans (10) to (12) are omitted variables
// (spans.h). A tensor that exists at the start has P[e,0] = 1; a tensor that is kept has X + P
// >= 1 at the last timestep.
//
// Several operators may run in one timestep; with `one_per_step`, sum over v of X[v,t] <= 1.
//
// Threads: one object, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/planner/papers/olla/graph.h"
#include "runtime/planner/papers/olla/spans.h"
#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner::olla {

// 0 or 1, as a variable or a constant.
struct Bit {
  int variable = -1;
  double known = 0;
};

// A row with some constant bits, which are moved to its bounds.
class RowOfBits {
 public:
  RowOfBits(std::string name, double lower, double upper);
  RowOfBits& add(Bit bit, double factor = 1);
  RowOfBits& add(int variable, double factor);
  // Adds nothing if all bits are constant and the row holds.
  void add_to(Program& program);  // once

 private:
  Row row_;
};

// Bytes at the fullest of `steps` timesteps, counting all its operators at once; includes what
// is resident.
int64_t peak_of(const Graph& graph, int steps, const std::vector<int>& timesteps);

class LifetimeProgram {
 public:
  // Bytes are given to the solver in units of `unit`. `graph` and `spans` must outlive it.
  LifetimeProgram(const Graph& graph, const Spans& spans, bool one_per_step, double unit);

  // Approximate number of terms that the constructor would make, to reject large programs
  // first.
  static int64_t term_count(const Graph& graph, const Spans& spans);

  Program& program() { return program_; }
  int peak() const { return peak_; }  // the variable peak_no_frag
  // X[src(e),t] and P[e,t].
  Bit created(int tensor, int t) const;
  Bit preserved(int tensor, int t) const;

  // The timestep of each operator in a solution.
  std::vector<int> timesteps(const std::vector<double>& values) const;
  // A solution from timesteps. REQUIRES: each timestep lies in its operator's span and after
  // its predecessors'; none is shared if one_per_step.
  std::vector<double> solution(const std::vector<int>& timesteps) const;
  int64_t peak_of(const std::vector<int>& timesteps) const {
    return olla::peak_of(graph_, spans_.steps, timesteps);
  }

 private:
  Bit run(OpId v, int t) const;
  void add_operators(bool one_per_step);
  void add_tensors();
  void add_peak();
  std::string at(const char* what, size_t id, int t) const;

  const Graph& graph_;
  const Spans& spans_;
  double unit_;
  Program program_;
  int peak_ = -1;
  std::vector<int> first_run_;          // per operator: variable of X[v, asap]; -1 if constant
  std::vector<std::vector<Bit>> kept_;  // per tensor: P[e,t] from spans.first on
};

}  // namespace tidemark::planner::olla
