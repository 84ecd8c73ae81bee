// The memory rows of MONeT's program: (1) to (6), (12) and (13), each at most M (4).
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/planner/papers/remat/monet_program.h"

namespace tidemark::planner::remat {

void MonetProgram::add_sums(size_t t) {
  sums_[t].emplace_back();
  for (int j = 0; j < passes_.forward; ++j) {
    const int64_t bytes = passes_.steps[j].bytes;
    LinearSum sum = sums_[t].back();
    sum.add(cells_[t][j].stored, scaled(bytes));
    if (sums_are_variables_ && bytes > 0 && !cells_[t][j].stored.is_zero()) {
      const LinearSum variable = LinearSum::of(program_.add_variable({.name = "sum"}));
      add_row(program_, "sum", sum.add(variable, -1), 0, 0);
      sum = variable;
    }
    sums_[t].push_back(std::move(sum));
  }
}

// |x_j| counts once if it is stored, if the backward node reads it, or both (C.1 by C.4).
LinearSum MonetProgram::held(size_t t, int j) const {
  const Cell& cell = cells_[t][j];
  return LinearSum{cell.stored}.add(cell.read).add(cell.both, -1);
}

// Over all j < i.
LinearSum MonetProgram::held_below(size_t t, int i) const {
  LinearSum sum = sums_[t][static_cast<size_t>(i)];
  for (int j = 0; j < i; ++j) {
    const Cell& cell = cells_[t][j];
    if (cell.read.is_zero()) continue;
    sum.add(LinearSum{cell.read}.add(cell.both, -1), scaled(passes_.steps[j].bytes));
  }
  return sum;
}

// Appendix B: x_j is in L of forward i if some forward u with j < i <= u may still read it.
bool MonetProgram::is_local(size_t t, int i, int j) const {
  const auto& readers =
      t > 0 && options_.tight_local ? passes_.stages[t].last_reader : passes_.last_reader;
  return j < i && readers[static_cast<size_t>(j)] >= i;
}

// (1): m_i = c_i + |x_i| + sum of L_i + sum of j < i, not in L_i: s[0,j] |x_j|.
void MonetProgram::add_forward_memory() {
  for (int i = 0; i < passes_.forward; ++i) {
    const Step& step = passes_.steps[i];
    const Cell& cell = cells_[0][i];
    LinearSum sum{scaled(step.fixed), {}};
    sum.add(cell.ran, scaled(step.bytes));
    for (size_t w = 0; w < cell.ways.size(); ++w) {
      sum.add(cell.ways[w], workspace_of(step.first[w]));
    }
    sum.add(sums_[0][static_cast<size_t>(i)]);
    for (int j = 0; j < i; ++j) {
      if (!is_local(0, i, j)) continue;
      const double bytes = scaled(passes_.steps[j].bytes);
      sum.add(cells_[0][j].ran, bytes).add(cells_[0][j].stored, -bytes);
    }
    at_most("(1)", std::move(sum), limit_);
  }
}

// (3), (6) and (12), with L bounded as in appendix B.
void MonetProgram::add_recomputation_memory(size_t t) {
  const Stage& stage = passes_.stages[t];
  const double held_anyway =
      scaled(stage.gradients + passes_.steps[stage.first].fixed_before);  // |^L_k|, parameters
  for (int i = 0; i < passes_.forward; ++i) {
    const Cell& cell = cells_[t][i];
    if (cell.ways.empty()) continue;
    LinearSum sum{held_anyway, {}};
    sum.add(cell.ran, scaled(passes_.steps[i].bytes));
    for (size_t w = 0; w < cell.ways.size(); ++w) {
      sum.add(cell.ways[w], workspace_of(passes_.steps[i].again[w]));
    }
    sum.add(held_below(t, i));
    for (int j = 0; j < i; ++j) {
      if (!is_local(t, i, j)) continue;
      const double bytes = scaled(passes_.steps[j].bytes);
      sum.add(cell.ran, bytes).add(held(t, j), -bytes);
    }
    sum.add(sums_[t - 1].back()).add(sums_[t - 1][static_cast<size_t>(i) + 1], -1);
    at_most("(12)", std::move(sum), limit_);
  }
}

// (13): what is stored when forward i does not run again.
void MonetProgram::add_stored_memory(size_t t) {
  const Stage& stage = passes_.stages[t];
  for (int i = 0; i < passes_.forward; ++i) {
    LinearSum sum{scaled(stage.gradients + passes_.steps[stage.first].fixed_before), {}};
    sum.add(held_below(t, i + 1));
    sum.add(sums_[t - 1].back()).add(sums_[t - 1][static_cast<size_t>(i) + 1], -1);
    at_most("(13)", std::move(sum), limit_);
  }
}

// (2) and (5): ^m_k = ^c_k + |y_k| + |^L_k| + |D and S|.
void MonetProgram::add_backward_memory(size_t t) {
  for (int k = passes_.stages[t].first; k < passes_.stages[t].end; ++k) {
    const Step& step = passes_.steps[k];
    LinearSum sum{scaled(step.fixed + step.bytes + passes_.gradients[static_cast<size_t>(k)]),
                  {}};
    const auto& ways = backward_[static_cast<size_t>(k - passes_.forward)];
    for (size_t w = 0; w < ways.size(); ++w) sum.add(ways[w], workspace_of(step.first[w]));
    sum.add(held_below(t, passes_.forward));
    at_most("(2)", std::move(sum), limit_);
  }
}

}  // namespace tidemark::planner::remat
