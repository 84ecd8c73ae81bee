// OLLA, section 3.4 and program (9): order and places in one program, what section 4.4
// (splitting) takes apart.
//
//   minimise peak subject to (1) to (8), with live[e,t] = X[src(e),t] + P[e,t] in (6):
//   a[i,j] + b[i,j] >= live[i,t] + live[j,t] - 1            for each t                (6)
//
// (13) is kept as well: it says nothing new of whole numbers, but something of fractions.
//
// Threads: one object, one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/papers/olla/lifetime_program.h"
#include "runtime/planner/papers/olla/precedence.h"

namespace tidemark::planner::olla {

class JointProgram {
 public:
  // `precedence`: without the pairs that can never meet (section 4.2). The arguments must
  // outlive it; `lifetimes` becomes part of it.
  JointProgram(const Graph& graph, const Spans& spans, bool precedence, double unit,
               LifetimeProgram& lifetimes);
  static int64_t term_count(const Graph& graph, const Spans& spans);

  Program& program() { return lifetimes_.program(); }
  // Where each tensor lies, given a solution and the timesteps in it; the resident ones lie
  // below all, in the order of the problem.
  Offsets offsets(const std::vector<double>& values, const std::vector<int>& timesteps) const;
  std::vector<double> solution(const std::vector<int>& timesteps, const Offsets& offsets) const;
  // Tensors as rectangles in timesteps.
  std::vector<Buffer> buffers(const std::vector<int>& timesteps) const;

 private:
  struct Pair {
    int i, j;
    int a, b;  // variables
  };
  const Graph& graph_;
  const Spans& spans_;
  double unit_;
  LifetimeProgram& lifetimes_;
  int peak_ = -1;
  std::vector<int> address_;  // per tensor: variable A; -1 for control edges
  std::vector<Pair> pairs_;
};

}  // namespace tidemark::planner::olla
