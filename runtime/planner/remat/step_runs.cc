#include "runtime/planner/remat/step_runs.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark::planner::remat {
namespace {

constexpr uint32_t kNone = tidemark::Schedule::kScratch;

bool writes_in_place(const StepTrace::Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [](const StepTrace::Input& input) { return input.written; });
}

}  // namespace

std::vector<uint32_t> order_of_first_runs(const StepTrace& trace, const StepProblem& problem,
                                          const std::vector<Event>& runs) {
  std::vector<uint32_t> order;
  std::vector<char> ran(trace.ops.size());
  uint32_t uploads = 0;  // those of operators below this number have run
  const auto upload_until = [&](uint32_t op) {
    for (; uploads < op; ++uploads) {
      if (trace.ops[uploads].kind == StepTrace::Kind::kUpload) order.push_back(uploads);
    }
  };
  for (const Event& event : runs) {
    if (!event.is_run()) continue;
    const uint32_t op = problem.op_of[event.node];
    if (std::exchange(ran[op], 1) != 0) continue;
    upload_until(op);
    order.push_back(op);
  }
  upload_until(static_cast<uint32_t>(trace.ops.size()));
  return order;
}

StepTrace as_first_run(StepTrace trace, const StepProblem& problem,
                       const std::vector<Event>& runs) {
  for (const Event& event : runs) {
    if (!event.is_run()) continue;
    const uint32_t variant = problem.variant_of[event.node][static_cast<size_t>(event.variant)];
    if (variant == 0) continue;  // no later run takes one
    StepTrace::Op& op = trace.ops[problem.op_of[event.node]];
    op.inputs = op.variants[variant - 1].inputs;
  }
  return trace;
}

StepRuns runs_of_step(const StepTrace& step, const std::vector<uint32_t>& order,
                      const StepProblem& problem, const std::vector<Event>& runs) {
  std::vector<uint32_t> position(order.size());
  for (uint32_t t = 0; t < order.size(); ++t) position[order[t]] = t;
  StepRuns result;
  uint32_t next = 0;  // operator of the step
  const auto upload_before = [&](uint32_t op) {
    for (; next < op; ++next) result.list.push_back({.op = next});
  };
  size_t last = 0;  // the last run in the list
  for (const Event& event : runs) {
    const Node& node = problem.problem.nodes[event.node];
    if (!event.is_run()) {
      result.list.push_back({.kind = StepRuns::Kind::kFree, .node = event.node});
    } else if (node.rider_of != kNoNode) {
      result.list[last].nodes.push_back(event.node);
    } else {
      const uint32_t op = position[problem.op_of[event.node]];
      const bool first = op >= next;
      if (first) upload_before(op);
      next += first ? 1 : 0;
      StepRuns::Item item{.kind = first ? StepRuns::Kind::kFirst : StepRuns::Kind::kAgain,
                          .op = op,
                          .nodes = {event.node}};
      const auto variant = static_cast<size_t>(event.variant);
      item.variant = problem.variant_of[event.node][variant];
      const NodeId old = node.variants[variant].overwrites;
      if (first && old != kNoNode && !writes_in_place(step.ops[op])) {
        item.overwrites = problem.value[old].front();
      }
      last = result.list.size();
      result.list.push_back(std::move(item));
    }
  }
  upload_before(static_cast<uint32_t>(order.size()));
  return result;
}

EvictionFacts::EvictionFacts(const StepTrace& step, const StepRuns& runs)
    : step_(step),
      producer_(step.storages.size(), kNone),
      writes_(step.storages.size()),
      released_(step.storages.size(), kNone),
      runs_of_(step.ops.size()) {
  for (uint32_t k = 0; k < step.ops.size(); ++k) {
    const StepTrace::Op& op = step.ops[k];
    for (const uint32_t s : op.released) released_[s] = k;
    for (const StepTrace::Input& input : op.inputs) {
      if (input.written) writes_[input.storage].push_back(k);
    }
    if (op.kind != StepTrace::Kind::kCall || writes_in_place(op)) continue;
    for (const uint32_t s : op.outputs) producer_[s] = k;
  }
  uint32_t first_runs = 0;
  for (size_t i = 0; i < runs.list.size(); ++i) {
    const StepRuns::Item& item = runs.list[i];
    first_runs_before_.push_back(first_runs);
    if (item.kind == StepRuns::Kind::kFirst) ++first_runs;
    if (item.kind != StepRuns::Kind::kFree) runs_of_[item.op].push_back(i);
  }
}

bool EvictionFacts::may_evict(uint32_t storage, size_t at) const {
  if (producer_[storage] == kNone) return false;
  // The operator after which the program drops a storage may itself write a source of it.
  const auto end_of = [this](uint32_t s) {
    return released_[s] == kNone ? kNone : released_[s] + 1;
  };
  uint32_t end = end_of(storage);
  const auto& runs = runs_of_[producer_[storage]];
  const auto next = std::upper_bound(runs.begin(), runs.end(), at);
  if (next != runs.end()) end = std::min(end, first_runs_before_[*next]);
  std::vector<uint32_t> pending{storage};
  std::vector<char> seen(step_.storages.size());
  while (!pending.empty()) {
    const uint32_t s = pending.back();
    pending.pop_back();
    if (producer_[s] == kNone) continue;  // stays for recipes (kept_sources.h)
    // A call that runs as a variant may precede the producers of its own inputs.
    if (s != storage && producer_[s] >= first_runs_before_[at]) return false;
    if (!can_be_made_before(s, end)) {
      if (s == storage || end_of(s) < end) return false;
      continue;  // stays: the program holds it
    }
    for (const StepTrace::Input& input : step_.ops[producer_[s]].inputs) {
      if (std::exchange(seen[input.storage], 1) == 0) pending.push_back(input.storage);
    }
  }
  return true;
}

// Whether its call may run again from the versions that it read, at any time before operator
// `end`, and gives the storage's contents.
bool EvictionFacts::can_be_made_before(uint32_t storage, uint32_t end) const {
  const auto is_written = [&](uint32_t s, uint32_t version) {
    return version < writes_[s].size() && writes_[s][version] < end;
  };
  const auto& inputs = step_.ops[producer_[storage]].inputs;
  return step_.storages[storage].may_evict && !is_written(storage, 0) &&
         std::none_of(inputs.begin(), inputs.end(), [&](const StepTrace::Input& input) {
           return is_written(input.storage, input.version);
         });
}

}  // namespace tidemark::planner::remat
