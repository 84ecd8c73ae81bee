// The variables of a moment program (moment_program.h): runs by window, and live values by
// moment.
//
// Threads: a MomentVariables belongs to one. Options, ForcedRuns and moments must outlive it.
#pragma once

#include <optional>
#include <vector>

#include "runtime/planner/remat/moment_program.h"

namespace tidemark::planner::remat {

using Terms = std::vector<LinearProgram::Term>;

// A variable, or a constant in its place.
struct Quantity {
  std::optional<LinearProgram::Variable> variable{};
  double constant = 0;

  // Adds `factor` times it to a row; returns its constant part.
  double add_to(Terms& terms, double factor) const;
};

// A run by an option in some window.
struct Column {
  OptionId option = kNoOption;
  int64_t need = 0;
  LinearProgram::Variable variable = 0;
};

class MomentVariables {
 public:
  MomentVariables(const Options& options, const ForcedRuns& forced,
                  const std::vector<NodeId>& moments);

  // Windows are numbered from 0, moments from 1: moment w begins window w.
  int windows() const { return windows_; }
  NodeId moment(int w) const { return moments_[w - 1]; }
  // Whether the node's run is the one that ends window w.
  bool ends(NodeId i, int w) const { return w + 1 < windows_ && moment(w + 1) == i; }
  // The last window in which a forced node's first run may be.
  int last_window(NodeId i) const;

  const std::vector<Column>& columns(NodeId i, int w) const {
    return columns_[static_cast<size_t>(i) * windows_ + w];
  }
  const Quantity& live(NodeId i, int w) const {
    return live_[static_cast<size_t>(i) * (windows_ - 1) + (w - 1)];
  }
  void add_runs_of(Terms& terms, NodeId i, int w, double factor) const;
  // Terms of option o's runs in window w.
  Terms runs_of_option(NodeId i, int w, OptionId o) const;

  LinearProgram::Variable add_variable(double price, bool is_integer = true);
  LinearProgram& linear() { return program_.linear; }
  MomentProgram take() { return std::move(program_); }

 private:
  struct Pending {
    int64_t need = 0;
    double price = 0;
  };
  void find_first_extra();
  int first_window(NodeId i) const;
  void add_runs(NodeId i, int w);
  void add_choices(OptionId o, bool again, std::vector<Pending>& result) const;
  Quantity make_live(NodeId i, int w);

  const Options& options_;
  const ForcedRuns& forced_;
  const std::vector<NodeId>& moments_;
  int windows_;
  MomentProgram program_;
  std::vector<double> first_extra_;           // by node
  std::vector<std::vector<Column>> columns_;  // by node and window
  std::vector<Quantity> live_;                // by node and moment
};

}  // namespace tidemark::planner::remat
