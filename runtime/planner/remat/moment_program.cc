#include "runtime/planner/remat/moment_program.h"

#include <algorithm>

#include "runtime/planner/remat/moment_variables.h"

namespace tidemark::planner::remat {
namespace {

using Variable = LinearProgram::Variable;

// The rows over the variables.
class Builder {
 public:
  Builder(const Options& options, const ForcedRuns& forced, const std::vector<NodeId>& moments)
      : options_(options),
        forced_(forced),
        variables_(options, forced, moments),
        windows_(variables_.windows()),
        count_(options.problem().size()),
        scale_(1 / std::max(1.0, static_cast<double>(options.budget()))) {}

  MomentProgram run() {
    for (NodeId i = 0; i < count_; ++i) {
      for (int w = 0; w < windows_; ++w) add_sources(i, w);
      for (int w = 1; w < windows_; ++w) add_origin(i, w);
      if (forced_.has(i)) add_forced(i);
    }
    for (int w = 1; w < windows_; ++w) add_memory(w);
    for (int w = 0; w < windows_; ++w) add_through(w);
    return variables_.take();
  }

 private:
  NodeId moment(int w) const { return variables_.moment(w); }
  const Quantity& live(NodeId i, int w) const { return variables_.live(i, w); }
  void at_most(const Terms& terms, double limit) { variables_.linear().at_most(terms, limit); }

  void add_sources(NodeId i, int w) {
    const bool is_moment = variables_.ends(i, w);
    for (const OptionId o : options_.of_node(i)) {
      const Terms runs = variables_.runs_of_option(i, w, o);
      if (runs.empty()) continue;
      const auto needs = [&](NodeId u) {
        Terms terms = runs;
        double constant = 0;
        if (is_moment) {
          constant = live(u, w + 1).add_to(terms, -1);
        } else {
          if (w > 0) constant = live(u, w).add_to(terms, -1);
          variables_.add_runs_of(terms, u, w, -1);
        }
        if (constant > -1) at_most(terms, -constant);
      };
      for (const NodeId u : options_.inputs(o)) needs(u);
      const NodeId parent = options_.rider_of(o);
      if (parent == kNoNode || (w > 0 && moment(w) == parent)) continue;
      Terms terms = runs;
      variables_.add_runs_of(terms, parent, w, -1);
      at_most(terms, 0);
    }
  }

  // Values that are live at a moment come from the window before.
  void add_origin(NodeId i, int w) {
    if (!live(i, w).variable) return;
    Terms terms{{*live(i, w).variable, 1}};
    const double constant = w > 1 ? live(i, w - 1).add_to(terms, -1) : 0;
    if (constant <= -1) return;
    variables_.add_runs_of(terms, i, w - 1, -1);
    at_most(terms, 0);
  }

  void add_forced(NodeId i) {
    Terms terms;
    for (int w = 0; w <= variables_.last_window(i); ++w)
      variables_.add_runs_of(terms, i, w, -1);
    at_most(terms, -1);
  }

  double scaled(int64_t bytes) const { return static_cast<double>(bytes) * scale_; }

  // Bytes that have become fixed before window w.
  void add_fixed(Terms& terms, int w, NodeId except) {
    for (NodeId i = 0; i < count_; ++i) {
      if (options_.adds_fixed(i) == 0 || i == except) continue;
      for (int before = 0; before < w; ++before) {
        variables_.add_runs_of(terms, i, before, scaled(options_.adds_fixed(i)));
      }
    }
  }

  void add_memory(int w) {
    Terms terms;
    for (const Column& column : variables_.columns(moment(w), w - 1)) {
      const int64_t need = column.need + options_.adds_fixed(moment(w));
      terms.push_back({column.variable, scaled(need)});
    }
    double constant = 0;
    for (NodeId i = 0; i < count_; ++i) {
      if (i == moment(w) || options_.bytes(i) == 0) continue;
      constant += live(i, w).add_to(terms, scaled(options_.bytes(i)));
    }
    add_fixed(terms, w, moment(w));
    merge(terms);
    at_most(terms, scaled(options_.budget() - options_.problem().fixed_bytes) - constant);
  }

  // Each variable once in a row.
  static void merge(Terms& terms) {
    std::sort(terms.begin(), terms.end(),
              [](const auto& a, const auto& b) { return a.variable < b.variable; });
    size_t kept = 0;
    for (const LinearProgram::Term& term : terms) {
      if (kept > 0 && terms[kept - 1].variable == term.variable) {
        terms[kept - 1].coefficient += term.coefficient;
      } else {
        terms[kept++] = term;
      }
    }
    terms.resize(kept);
  }

  // Runs of window w with several variants, against what is held throughout the window.
  void add_through(int w) {
    std::vector<NodeId> heavy;
    for (NodeId i = 0; i < count_; ++i) {
      const bool is_moment = variables_.ends(i, w);
      if (variables_.columns(i, w).size() > 1 && !is_moment) heavy.push_back(i);
    }
    if (heavy.empty()) return;
    std::vector<std::optional<Variable>> through(count_);
    const Variable held = variables_.add_variable(0, false);  // bytes, in budgets
    Terms sum;
    if (w > 0 && w + 1 < windows_) {
      for (NodeId i = 0; i < count_; ++i) {
        if (options_.bytes(i) == 0) continue;
        Terms terms;
        double constant = live(i, w).add_to(terms, 1) + live(i, w + 1).add_to(terms, 1);
        if (terms.size() + constant < 2) continue;
        through[i] = variables_.add_variable(0, false);
        sum.push_back({*through[i], scaled(options_.bytes(i))});
        terms.push_back({*through[i], -1});
        variables_.add_runs_of(terms, i, w, -1);
        at_most(terms, 1 - constant);
      }
    }
    sum.push_back({held, -1});
    at_most(sum, 0);
    for (const NodeId i : heavy) add_heavy(i, w, held, through);
  }

  void add_heavy(NodeId i, int w, Variable held,
                 const std::vector<std::optional<Variable>>& through) {
    Terms terms{{held, 1}};
    for (const Column& column : variables_.columns(i, w)) {
      terms.push_back({column.variable, scaled(column.need + options_.adds_fixed(i))});
    }
    for (const OptionId o : options_.of_node(i)) {
      const Terms runs = variables_.runs_of_option(i, w, o);
      if (runs.empty()) continue;
      for (const NodeId u : options_.inputs(o)) {
        if (options_.bytes(u) == 0) continue;
        // What the input adds to the values that are held anyway.
        const double bytes = scaled(options_.bytes(u));
        if (!through[u]) {
          for (const LinearProgram::Term& run : runs) terms.push_back({run.variable, bytes});
          continue;
        }
        const Variable extra = variables_.add_variable(0, false);
        Terms row = runs;
        row.push_back({*through[u], -1});
        row.push_back({extra, -1});
        at_most(row, 0);
        terms.push_back({extra, bytes});
      }
    }
    add_fixed(terms, w, i);
    merge(terms);
    at_most(terms, scaled(options_.budget() - options_.problem().fixed_bytes));
  }

  const Options& options_;
  const ForcedRuns& forced_;
  MomentVariables variables_;
  int windows_;
  NodeId count_;
  double scale_;
};

}  // namespace

MomentProgram make_moment_program(const Options& options, const ForcedRuns& forced,
                                  const std::vector<NodeId>& moments) {
  return Builder(options, forced, moments).run();
}

}  // namespace tidemark::planner::remat
