// OLLA, section 3.4 and program (9): order and layout in one program, which section 4.4
// (splitting) separates.
//
//   minimise peak subject to (1) to (8), with live[e,t] = X[src(e),t] + P[e,t] in (6):
//   a[i,j] + b[i,j] >= live[i,t] + live[j,t] - 1            for each t                (6)
//
// (13) is kept as well: redundant for integers, it tightens the relaxation.
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
  // `precedence`: omits pairs that can never overlap (section 4.2). `graph` and `spans` must
  // outlive this object.
  JointProgram(const Graph& graph, const Spans& spans, bool precedence, double unit,
               LifetimeProgram& lifetimes);
  static int64_t term_count(const Graph& graph, const Spans& spans);

  Program& program() { return lifetimes_.program(); }
  // Each tensor's offset, given a solution and its timesteps. Resident tensors lie below all
  // others, in the problem's order.
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
