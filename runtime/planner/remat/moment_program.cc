#include "runtime/planner/remat/moment_program.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace tidemark::planner::remat {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

using Variable = LinearProgram::Variable;
using Terms = std::vector<LinearProgram::Term>;

// A variable, or a constant in its place.
struct Quantity {
  std::optional<Variable> variable{};
  double constant = 0;
};

// A run by an option in some window.
struct Column {
  OptionId option = kNoOption;
  int64_t need = 0;
  Variable variable = 0;
};

class Builder {
 public:
  Builder(const Options& options, const ForcedRuns& forced, const std::vector<NodeId>& moments)
      : options_(options),
        forced_(forced),
        moments_(moments),
        windows_(static_cast<int>(moments.size()) + 1),
        count_(options.problem().size()),
        scale_(1 / std::max(1.0, static_cast<double>(options.budget()))) {}

  MomentProgram run() {
    find_first_extra();
    columns_.resize(static_cast<size_t>(count_) * windows_);
    for (NodeId i = 0; i < count_; ++i) {
      for (int w = first_window(i); w < windows_; ++w) add_runs(i, w);
      for (int w = 1; w < windows_; ++w) live_.push_back(make_live(i, w));
    }
    for (NodeId i = 0; i < count_; ++i) {
      for (int w = 0; w < windows_; ++w) add_sources(i, w);
      for (int w = 1; w < windows_; ++w) add_origin(i, w);
      if (forced_.has(i)) add_forced(i);
    }
    for (int w = 1; w < windows_; ++w) add_memory(w);
    for (int w = 0; w < windows_; ++w) add_through(w);
    return std::move(program_);
  }

 private:
  Variable add_variable(double price, bool is_integer = true) {
    program_.is_integer.push_back(is_integer);
    return program_.linear.variable(1, price);
  }
  std::vector<Column>& columns(NodeId i, int w) {
    return columns_[static_cast<size_t>(i) * windows_ + w];
  }
  const Quantity& live(NodeId i, int w) const {
    return live_[static_cast<size_t>(i) * (windows_ - 1) + (w - 1)];
  }
  NodeId moment(int w) const { return moments_[w - 1]; }

  // What any first run costs more than the cheapest later one. It is paid once, whatever else.
  void find_first_extra() {
    first_extra_.assign(count_, 0);
    for (const NodeId i : forced_.nodes()) {
      double first = kNever, again = kNever;
      for (const OptionId o : options_.of_node(i)) {
        if (!options_.choices(o, false).empty()) {
          first = std::min(first, options_.choices(o, false).back().time);
        }
        if (!options_.choices(o, true).empty()) {
          again = std::min(again, options_.choices(o, true).back().time);
        }
      }
      if (first == kNever || again == kNever) continue;
      first_extra_[i] = std::max(0.0, first - again);
      program_.constant += first_extra_[i];
    }
  }

  // The first window in which the node may run.
  int first_window(NodeId i) const {
    int w = 0;
    for (int m = 1; m < windows_; ++m) {
      if (forced_.is_before(moment(m), i)) w = m;
      if (moment(m) == i) w = std::max(w, m - 1);
    }
    return w;
  }
  // The last window in which a forced node's first run may be.
  int last_window(NodeId i) const {
    for (int m = 1; m < windows_; ++m) {
      if (moment(m) == i || forced_.is_before(i, moment(m))) return m - 1;
    }
    return windows_ - 1;
  }

  void add_runs(NodeId i, int w) {
    const bool may_be_first = w <= last_window(i);
    const bool may_be_again = w > first_window(i) && !options_.once(i);
    std::vector<Column>& result = columns(i, w);
    for (const OptionId o : options_.of_node(i)) {
      std::vector<Pending> choices;
      if (may_be_first) add_choices(o, false, choices);
      if (may_be_again) add_choices(o, true, choices);
      std::sort(choices.begin(), choices.end(), [](const Pending& a, const Pending& b) {
        return a.need != b.need ? a.need < b.need : a.price < b.price;
      });
      double least = kNever;
      for (const Pending& choice : choices) {
        if (choice.price >= least) continue;  // another needs less and costs less
        least = choice.price;
        result.push_back({o, choice.need, add_variable(choice.price)});
      }
    }
    Terms sum;
    add_runs_of(sum, i, w, 1);
    if (sum.size() > 1) program_.linear.at_most(sum, 1);
  }

  struct Pending {
    int64_t need = 0;
    double price = 0;
  };
  void add_choices(OptionId o, bool again, std::vector<Pending>& result) const {
    const double extra = again ? 0 : first_extra_[options_.node(o)];
    for (const Choice& choice : options_.choices(o, again)) {
      result.push_back({choice.need, std::max(0.0, choice.time - extra)});
    }
  }

  Quantity make_live(NodeId i, int w) {
    if (moment(w) == i) return {std::nullopt, 1};
    if (forced_.is_before(moment(w), i)) return {std::nullopt, 0};
    return {add_variable(0), 0};
  }

  // Adds `factor` times a quantity to a row; returns its constant part.
  static double add(Terms& terms, const Quantity& quantity, double factor) {
    if (quantity.variable) {
      terms.push_back({*quantity.variable, factor});
      return 0;
    }
    return factor * quantity.constant;
  }
  void add_runs_of(Terms& terms, NodeId i, int w, double factor) {
    for (const Column& column : columns(i, w)) terms.push_back({column.variable, factor});
  }

  // Terms of option o's runs in window w.
  Terms runs_of_option(NodeId i, int w, OptionId o) {
    Terms terms;
    for (const Column& column : columns(i, w)) {
      if (column.option == o) terms.push_back({column.variable, 1});
    }
    return terms;
  }

  void add_sources(NodeId i, int w) {
    const bool is_moment = w + 1 < windows_ && moment(w + 1) == i;
    for (const OptionId o : options_.of_node(i)) {
      const Terms runs = runs_of_option(i, w, o);
      if (runs.empty()) continue;
      const auto needs = [&](NodeId u) {
        Terms terms = runs;
        double constant = 0;
        if (is_moment) {
          constant = add(terms, live(u, w + 1), -1);
        } else {
          if (w > 0) constant = add(terms, live(u, w), -1);
          add_runs_of(terms, u, w, -1);
        }
        if (constant > -1) program_.linear.at_most(terms, -constant);
      };
      for (const NodeId u : options_.inputs(o)) needs(u);
      const NodeId parent = options_.rider_of(o);
      if (parent == kNoNode || (w > 0 && moment(w) == parent)) continue;
      Terms terms = runs;
      add_runs_of(terms, parent, w, -1);
      program_.linear.at_most(terms, 0);
    }
  }

  // Values that are live at a moment come from the window before.
  void add_origin(NodeId i, int w) {
    if (!live(i, w).variable) return;
    Terms terms{{*live(i, w).variable, 1}};
    const double constant = w > 1 ? add(terms, live(i, w - 1), -1) : 0;
    if (constant <= -1) return;
    add_runs_of(terms, i, w - 1, -1);
    program_.linear.at_most(terms, 0);
  }

  void add_forced(NodeId i) {
    Terms terms;
    for (int w = 0; w <= last_window(i); ++w) add_runs_of(terms, i, w, -1);
    program_.linear.at_most(terms, -1);
  }

  double scaled(int64_t bytes) const { return static_cast<double>(bytes) * scale_; }

  // Bytes that have become fixed before window w.
  void add_fixed(Terms& terms, int w, NodeId except) {
    for (NodeId i = 0; i < count_; ++i) {
      if (options_.adds_fixed(i) == 0 || i == except) continue;
      for (int before = 0; before < w; ++before) {
        add_runs_of(terms, i, before, scaled(options_.adds_fixed(i)));
      }
    }
  }

  void add_memory(int w) {
    Terms terms;
    for (const Column& column : columns(moment(w), w - 1)) {
      const int64_t need = column.need + options_.adds_fixed(moment(w));
      terms.push_back({column.variable, scaled(need)});
    }
    double constant = 0;
    for (NodeId i = 0; i < count_; ++i) {
      if (i == moment(w) || options_.bytes(i) == 0) continue;
      constant += add(terms, live(i, w), scaled(options_.bytes(i)));
    }
    add_fixed(terms, w, moment(w));
    merge(terms);
    program_.linear.at_most(
        terms, scaled(options_.budget() - options_.problem().fixed_bytes) - constant);
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
      const bool is_moment = w + 1 < windows_ && moment(w + 1) == i;
      if (columns(i, w).size() > 1 && !is_moment) heavy.push_back(i);
    }
    if (heavy.empty()) return;
    std::vector<std::optional<Variable>> through(count_);
    const Variable held = add_variable(0, false);  // bytes, in budgets
    Terms sum;
    if (w > 0 && w + 1 < windows_) {
      for (NodeId i = 0; i < count_; ++i) {
        if (options_.bytes(i) == 0) continue;
        Terms terms;
        double constant = add(terms, live(i, w), 1) + add(terms, live(i, w + 1), 1);
        if (terms.size() + constant < 2) continue;
        through[i] = add_variable(0, false);
        sum.push_back({*through[i], scaled(options_.bytes(i))});
        terms.push_back({*through[i], -1});
        add_runs_of(terms, i, w, -1);
        program_.linear.at_most(terms, 1 - constant);
      }
    }
    sum.push_back({held, -1});
    program_.linear.at_most(sum, 0);
    for (const NodeId i : heavy) add_heavy(i, w, held, through);
  }

  void add_heavy(NodeId i, int w, Variable held,
                 const std::vector<std::optional<Variable>>& through) {
    Terms terms{{held, 1}};
    for (const Column& column : columns(i, w)) {
      terms.push_back({column.variable, scaled(column.need + options_.adds_fixed(i))});
    }
    for (const OptionId o : options_.of_node(i)) {
      const Terms runs = runs_of_option(i, w, o);
      if (runs.empty()) continue;
      for (const NodeId u : options_.inputs(o)) {
        if (options_.bytes(u) == 0) continue;
        // What the input adds to the values that are held anyway.
        const double bytes = scaled(options_.bytes(u));
        if (!through[u]) {
          for (const LinearProgram::Term& run : runs) terms.push_back({run.variable, bytes});
          continue;
        }
        const Variable extra = add_variable(0, false);
        Terms row = runs;
        row.push_back({*through[u], -1});
        row.push_back({extra, -1});
        program_.linear.at_most(row, 0);
        terms.push_back({extra, bytes});
      }
    }
    add_fixed(terms, w, i);
    merge(terms);
    program_.linear.at_most(terms, scaled(options_.budget() - options_.problem().fixed_bytes));
  }

  const Options& options_;
  const ForcedRuns& forced_;
  const std::vector<NodeId>& moments_;
  int windows_;
  NodeId count_;
  double scale_;
  MomentProgram program_;
  std::vector<double> first_extra_;           // by node
  std::vector<std::vector<Column>> columns_;  // by node and window
  std::vector<Quantity> live_;                // by node and moment
};

}  // namespace

MomentProgram make_moment_program(const Options& options, const ForcedRuns& forced,
                                  const std::vector<NodeId>& moments) {
  return Builder(options, forced, moments).run();
}

}  // namespace tidemark::planner::remat
