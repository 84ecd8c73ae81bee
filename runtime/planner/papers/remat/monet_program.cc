#include "runtime/planner/papers/remat/monet_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/remat/budget_unit.h"

namespace tidemark::planner::remat {

MonetProgram::MonetProgram(const TwoPass& passes, int64_t budget, const MonetOptions& options)
    : passes_(passes), options_(options) {
  const BudgetUnit scale(budget);
  unit_ = scale.unit;
  limit_ = scale.limit;
  const size_t stages = passes.stages.size();
  cells_.assign(stages, std::vector<Cell>(static_cast<size_t>(passes.forward)));
  sums_.resize(stages);
  sums_are_variables_ = static_cast<int64_t>(stages) * passes.forward * passes.forward >
                        options.most_direct_terms;
  backward_.resize(static_cast<size_t>(passes.size() - passes.forward));
  for (size_t t = 0; t < stages; ++t) {
    for (int i = 0; i < passes.forward; ++i) add_implementations(t, i);
    if (t > 0) add_backward(t);
    add_kept(t);
    add_riders(t);
    add_checkpoint_rows(t);
    add_in_place_rows(t);
    add_sums(t);
    if (t == 0) {
      add_forward_memory();
    } else {
      if (passes.stages[t].reads_forward) add_recomputation_memory(t);
      if (options.stored_rows) add_stored_memory(t);
      add_backward_memory(t);
    }
  }
}

const std::vector<Way>& MonetProgram::ways_of(size_t t, int i) const {
  return t == 0 ? passes_.steps[i].first : passes_.steps[i].again;
}

double MonetProgram::workspace_of(const Way& way) const {
  return options_.workspace ? scaled(way.workspace) : 0;
}

LinearSum MonetProgram::in_place(size_t t, int i, int j) const {
  LinearSum sum;
  const auto& ways = ways_of(t, i);
  for (size_t w = 0; w < cells_[t][i].ways.size(); ++w) {
    if (ways[w].overwrites == j) sum.add(cells_[t][i].ways[w]);
  }
  return sum;
}

void MonetProgram::at_most(const char* equation, LinearSum sum, double limit) {
  terms_ += static_cast<int64_t>(sum.terms.size());
  if (terms_ > options_.most_terms) {
    throw UsageError("[monet] the program has more than " +
                     std::to_string(options_.most_terms / 1'000'000) + " million terms");
  }
  add_row(program_, equation, std::move(sum), -kInfinity, limit);
}

int MonetProgram::add_timed(const char* name, double time) {
  const int variable = program_.add_binary(name);
  program_.variables[static_cast<size_t>(variable)].cost = time;  // (9)
  return variable;
}

// s, d and r of one forward step: sum over l of d[0,i,l] = 1, sum over l of d[t,i,l] = r[t,i].
void MonetProgram::add_implementations(size_t t, int i) {
  const Step& step = passes_.steps[i];
  const Stage& stage = passes_.stages[t];
  Cell& cell = cells_[t][i];
  const bool must_run = t == 0 && step.must_run;
  const bool may_run =
      t == 0 || (stage.reads_forward && stage.may_need(i) && step.may_run_again);
  if (may_run) {
    for (const Way& way : ways_of(t, i)) {
      cell.ways.push_back(LinearSum::of(add_timed("d", way.time)));
      cell.ran.add(cell.ways.back());
    }
    if (cell.ways.size() > 1) at_most("sec. 4", cell.ran, 1);
    if (must_run) at_most("sec. 4", LinearSum{}.add(cell.ran, -1), -1);
  }
  const bool is_of_use =
      t == 0 ? passes_.stages.size() > 1 && passes_.stages[1].may_need(i) : stage.may_need(i);
  if (is_of_use) cell.stored = LinearSum::of(program_.add_binary("s"));
  // A rider that was left out of the forward pass has no later run.
  if (t > 0 && may_run && step.rides_on >= 0) {
    for (size_t w = 0; w < cell.ways.size(); ++w) {
      if (step.again[w].when != When::kAgain) continue;
      at_most("again", LinearSum{}.add(cell.ways[w]).add(cells_[0][i].ran, -1), 0);
    }
  }
}

// d[k,l] of the stage's nodes, sum over l of d[k,l] = 1; and o[t,i] by C.4.
void MonetProgram::add_backward(size_t t) {
  const Stage& stage = passes_.stages[t];
  for (int k = stage.first; k < stage.end; ++k) {
    auto& ways = backward_[static_cast<size_t>(k - passes_.forward)];
    LinearSum one;
    const size_t count = passes_.steps[k].first.size();
    for (const Way& way : passes_.steps[k].first) {
      const int variable = add_timed("d", way.time);
      if (count == 1) program_.variables[static_cast<size_t>(variable)].lower = 1;
      ways.push_back(LinearSum::of(variable));
      one.add(ways.back());
      for (const int i : way.forward) cells_[t][i].read.add(ways.back());
    }
    if (count > 1) {
      at_most("sec. 4", one, 1);
      at_most("sec. 4", LinearSum{}.add(one, -1), -1);
    }
    for (int i = 0; i < passes_.forward; ++i) {
      Cell& cell = cells_[t][i];
      if (cell.read.terms.empty()) continue;
      if (cell.read.terms.size() == count) {  // every implementation reads it
        cell.read = {1, {}};
        cell.both = cell.stored;
        continue;
      }
      cell.both = LinearSum::of(program_.add_binary("o"));
      at_most("C.4", LinearSum{-1, {}}.add(cell.stored).add(cell.read).add(cell.both, -1), 0);
      at_most("C.4", LinearSum{}.add(cell.both).add(cell.stored, -1), 0);
      at_most("C.4", LinearSum{}.add(cell.both).add(cell.read, -1), 0);
    }
  }
}

// p[t,j]: a variable where some run of the stage may overwrite j, r[t,j] elsewhere.
void MonetProgram::add_kept(size_t t) {
  for (int i = 0; i < passes_.forward; ++i) {
    const auto& ways = ways_of(t, i);
    for (size_t w = 0; w < cells_[t][i].ways.size(); ++w) {
      if (ways[w].overwrites < 0) continue;
      auto& list = cells_[t][ways[w].overwrites].overwriters;
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  }
  for (Cell& cell : cells_[t]) {
    const bool may_be_overwritten = !cell.overwriters.empty() && !cell.ran.is_zero();
    cell.kept = may_be_overwritten ? LinearSum::of(program_.add_binary("p")) : cell.ran;
  }
}

// A rider runs directly after its node, by an implementation that goes with the node's.
void MonetProgram::add_riders(size_t t) {
  std::vector<LinearSum> riders(static_cast<size_t>(passes_.forward));
  for (int i = 0; i < passes_.forward; ++i) {
    const int parent = passes_.steps[i].rides_on;
    if (parent < 0 || cells_[t][i].ran.is_zero()) continue;
    riders[parent].add(cells_[t][i].ran);
    const auto& ways = ways_of(t, i);
    const auto& of_parent = ways_of(t, parent);
    for (size_t w = 0; w < ways.size(); ++w) {
      LinearSum row = cells_[t][i].ways[w];
      for (size_t v = 0; v < cells_[t][parent].ways.size(); ++v) {
        const auto& with = ways[w].with;
        if (std::find(with.begin(), with.end(), of_parent[v].variant) != with.end()) {
          row.add(cells_[t][parent].ways[v], -1);
        }
      }
      at_most("rider", row, 0);
    }
  }
  for (int i = 0; i < passes_.forward; ++i) {
    if (riders[i].terms.empty()) continue;
    at_most("riders", riders[i].add(cells_[t][i].ran, -1), 0);
  }
}

// (7) and (8). Before the forward pass nothing is stored.
void MonetProgram::add_checkpoint_rows(size_t t) {
  const auto available = [&](int j) {  // s[t-1,j] + p[t,j]
    LinearSum sum = cells_[t][j].kept;
    if (t > 0) sum.add(cells_[t - 1][j].stored);
    return sum;
  };
  for (int i = 0; i < passes_.forward; ++i) {
    const Cell& cell = cells_[t][i];
    if (!cell.stored.is_zero()) {
      at_most("(7)", LinearSum{cell.stored}.add(available(i), -1), 0);
    }
    for (int j = 0; j < i && !cell.ways.empty(); ++j) {
      if (t == 0 && passes_.steps[j].rides_on < 0) continue;  // it ran
      LinearSum readers, overwriters;
      for (size_t w = 0; w < cell.ways.size(); ++w) {
        const Way& way = ways_of(t, i)[w];
        if (!std::binary_search(way.forward.begin(), way.forward.end(), j)) continue;
        (way.overwrites == j ? overwriters : readers).add(cell.ways[w]);
      }
      if (!readers.is_zero()) at_most("(7)", readers.add(available(j), -1), 0);
      if (!overwriters.is_zero()) {
        overwriters.add(cells_[t][j].ran, -1);
        if (t > 0) overwriters.add(cells_[t - 1][j].stored, -1);
        at_most("(7)", overwriters, 0);
      }
    }
    if (!cell.read.is_zero()) {
      at_most("(8)", LinearSum{cell.read}.add(cell.stored, -1).add(cell.kept, -1), 0);
    }
  }
}

// C.3, and no run after the one in place that reads the value.
void MonetProgram::add_in_place_rows(size_t t) {
  for (int j = 0; j < passes_.forward; ++j) {
    const Cell& cell = cells_[t][j];
    for (const int i : cell.overwriters) {
      const LinearSum q = in_place(t, i, j);
      if (!cell.ran.is_zero()) {
        at_most("C.3", LinearSum{cell.ran}.add(q, -2).add(cell.kept, -1), 0);
        at_most("C.3", LinearSum{cell.kept}.add(q, 2), 2);
        at_most("C.3", LinearSum{cell.kept}.add(cell.ran, -1), 0);
      }
      if (!cell.stored.is_zero()) at_most("C.3", LinearSum{cell.stored}.add(q, 2), 2);
      for (int u = i + 1; u < passes_.forward; ++u) {
        LinearSum readers;
        for (size_t w = 0; w < cells_[t][u].ways.size(); ++w) {
          const Way& way = ways_of(t, u)[w];
          if (std::binary_search(way.forward.begin(), way.forward.end(), j)) {
            readers.add(cells_[t][u].ways[w]);
          }
        }
        if (!readers.is_zero()) at_most("C.3", readers.add(q), 1);
      }
    }
  }
}

std::vector<PlannedRun> MonetProgram::decode(const std::vector<double>& values) const {
  const auto chosen = [&](const LinearSum& sum) {
    return !sum.terms.empty() && values[static_cast<size_t>(sum.terms[0].variable)] > 0.5;
  };
  std::vector<PlannedRun> runs;
  for (size_t t = 0; t < cells_.size(); ++t) {
    for (int i = 0; i < passes_.forward; ++i) {
      for (size_t w = 0; w < cells_[t][i].ways.size(); ++w) {
        if (!chosen(cells_[t][i].ways[w])) continue;
        runs.push_back({passes_.steps[i].node, ways_of(t, i)[w].variant});
      }
    }
    if (t == 0) continue;
    for (int k = passes_.stages[t].first; k < passes_.stages[t].end; ++k) {
      const auto& ways = backward_[static_cast<size_t>(k - passes_.forward)];
      for (size_t w = 0; w < ways.size(); ++w) {
        if (!chosen(ways[w])) continue;
        runs.push_back({passes_.steps[k].node, passes_.steps[k].first[w].variant});
      }
    }
  }
  return runs;
}

}  // namespace tidemark::planner::remat
