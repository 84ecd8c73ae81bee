#include "runtime/planner/remat/moment_variables.h"

#include <algorithm>
#include <limits>

namespace tidemark::planner::remat {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

MomentVariables::MomentVariables(const Options& options, const ForcedRuns& forced,
                                 const std::vector<NodeId>& moments)
    : options_(options),
      forced_(forced),
      moments_(moments),
      windows_(static_cast<int>(moments.size()) + 1) {
  find_first_extra();
  const NodeId count = options.problem().size();
  columns_.resize(static_cast<size_t>(count) * windows_);
  for (NodeId i = 0; i < count; ++i) {
    for (int w = first_window(i); w < windows_; ++w) add_runs(i, w);
    for (int w = 1; w < windows_; ++w) live_.push_back(make_live(i, w));
  }
}

double Quantity::add_to(Terms& terms, double factor) const {
  if (variable) {
    terms.push_back({*variable, factor});
    return 0;
  }
  return factor * constant;
}

LinearProgram::Variable MomentVariables::add_variable(double price, bool is_integer) {
  program_.is_integer.push_back(is_integer);
  return program_.linear.variable(1, price);
}

void MomentVariables::add_runs_of(Terms& terms, NodeId i, int w, double factor) const {
  for (const Column& column : columns(i, w)) terms.push_back({column.variable, factor});
}

Terms MomentVariables::runs_of_option(NodeId i, int w, OptionId o) const {
  Terms terms;
  for (const Column& column : columns(i, w)) {
    if (column.option == o) terms.push_back({column.variable, 1});
  }
  return terms;
}

// What any first run costs more than the cheapest later one. It is paid once, whatever else.
void MomentVariables::find_first_extra() {
  first_extra_.assign(options_.problem().nodes.size(), 0);
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
int MomentVariables::first_window(NodeId i) const {
  int w = 0;
  for (int m = 1; m < windows_; ++m) {
    if (forced_.is_before(moment(m), i)) w = m;
    if (moment(m) == i) w = std::max(w, m - 1);
  }
  return w;
}

int MomentVariables::last_window(NodeId i) const {
  for (int m = 1; m < windows_; ++m) {
    if (moment(m) == i || forced_.is_before(i, moment(m))) return m - 1;
  }
  return windows_ - 1;
}

void MomentVariables::add_runs(NodeId i, int w) {
  const bool may_be_first = w <= last_window(i);
  const bool may_be_again = w > first_window(i) && !options_.once(i);
  std::vector<Column>& result = columns_[static_cast<size_t>(i) * windows_ + w];
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

void MomentVariables::add_choices(OptionId o, bool again, std::vector<Pending>& result) const {
  const double extra = again ? 0 : first_extra_[options_.node(o)];
  for (const Choice& choice : options_.choices(o, again)) {
    result.push_back({choice.need, std::max(0.0, choice.time - extra)});
  }
}

Quantity MomentVariables::make_live(NodeId i, int w) {
  if (moment(w) == i) return {std::nullopt, 1};
  if (forced_.is_before(moment(w), i)) return {std::nullopt, 0};
  return {add_variable(0), 0};
}

}  // namespace tidemark::planner::remat
