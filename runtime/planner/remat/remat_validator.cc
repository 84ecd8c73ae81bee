#include "runtime/planner/remat/remat_validator.h"

#include <algorithm>

namespace tidemark::planner::remat {
namespace {

class Machine {
 public:
  explicit Machine(const Problem& problem)
      : problem_(problem),
        fixed_(problem.fixed_bytes),
        peak_(problem.fixed_bytes),
        live_(problem.nodes.size()),
        is_over_(problem.nodes.size()),
        runs_(problem.nodes.size()) {}

  // The broken rule, or an empty text.
  std::string step(const Event& event) {
    if (event.node < 0 || event.node >= problem_.size()) return "there is no such node";
    return event.is_run() ? run(event) : free(event.node);
  }

  std::string finish() const {
    for (NodeId i = 0; i < problem_.size(); ++i) {
      if (problem_.must_run(i) && runs_[i] == 0) return "required, but never computed" + of(i);
    }
    return "";
  }

  int64_t peak() const { return peak_; }
  double time() const { return time_; }

 private:
  static std::string of(NodeId i) { return ": node " + std::to_string(i); }

  void drop(NodeId i) {
    live_[i] = false;
    live_bytes_ -= problem_.nodes[i].bytes;
  }

  std::string free(NodeId i) {
    if (!live_[i]) return "freed, but not live" + of(i);
    drop(i);
    return "";
  }

  std::string run(const Event& event) {
    const Node& node = problem_.nodes[event.node];
    if (event.variant < 0 || static_cast<size_t>(event.variant) >= node.variants.size()) {
      return "has no such variant" + of(event.node);
    }
    const Variant& variant = node.variants[event.variant];
    std::string fault = why_not(event, node, variant);
    if (!fault.empty()) return fault;
    fixed_ += node.adds_fixed;
    peak_ = std::max(peak_, fixed_ + live_bytes_ + node.bytes + variant.workspace);
    live_[event.node] = true;
    live_bytes_ += node.bytes;
    if (variant.overwrites != kNoNode) drop(variant.overwrites);
    time_ += variant.time;
    ++runs_[event.node];
    for (const NodeId u : node.after) is_over_[u] = true;
    last_ = event;
    return "";
  }

  std::string why_not(const Event& event, const Node& node, const Variant& variant) const {
    const NodeId i = event.node;
    if (live_[i]) return "computed while live" + of(i);
    if (node.once && runs_[i] > 0) return "may run only once" + of(i);
    if (is_over_[i]) return "a node that comes after all its runs has run" + of(i);
    if (variant.when == When::kFirst && runs_[i] > 0)
      return "variant for the first run only" + of(i);
    if (variant.when == When::kAgain && runs_[i] == 0)
      return "variant for later runs only" + of(i);
    if (node.rider_of != kNoNode) {
      if (last_.node != node.rider_of) return "must directly follow its rider_of" + of(i);
      if (variant.with &&
          std::count(variant.with->begin(), variant.with->end(), last_.variant) == 0) {
        return "does not match the variant of its rider_of" + of(i);
      }
    }
    for (const NodeId u : variant.inputs) {
      if (!live_[u]) return "input " + std::to_string(u) + " is not live" + of(i);
    }
    if (variant.overwrites != kNoNode && !live_[variant.overwrites]) {
      return "overwrites a value that is not live" + of(i);
    }
    return "";
  }

  const Problem& problem_;
  int64_t fixed_, peak_, live_bytes_ = 0;
  double time_ = 0;
  std::vector<bool> live_;
  std::vector<bool> is_over_;  // may not run any more
  std::vector<int64_t> runs_;
  Event last_;  // the last run; frees may follow it
};

}  // namespace

Verdict validate(const Problem& problem, const std::vector<Event>& events) {
  Machine machine(problem);
  Verdict verdict;
  for (size_t e = 0; e < events.size() && verdict.fault.empty(); ++e) {
    const std::string fault = machine.step(events[e]);
    if (!fault.empty()) verdict.fault = "event " + std::to_string(e) + ": " + fault;
  }
  if (verdict.fault.empty()) verdict.fault = machine.finish();
  verdict.peak = machine.peak();
  verdict.time = machine.time();
  return verdict;
}

}  // namespace tidemark::planner::remat
