#include <vector>

#include "runtime/planner/assemble.h"
#include "runtime/planner/baselines/baselines.h"
#include "runtime/planner/baselines/caching_allocator.h"
#include "runtime/planner/lifetimes.h"
#include "runtime/planner/order/order.h"

namespace tidemark::planner {
namespace {

// The stream of each storage, by the operator that makes it. What is there at the start is of
// stream 0, PyTorch's default stream.
std::vector<int32_t> streams_of_storages(const Problem& problem) {
  std::vector<int32_t> streams(problem.storages.size(), 0);
  for (const Operator& op : problem.operators) {
    for (const StorageId id : op.outputs) {
      if (problem.root(id) == id) streams[id] = op.stream;
    }
  }
  return streams;
}

// For each storage, whether it or an alias of it holds a value before the first operator.
std::vector<bool> present_at_start(const Problem& problem) {
  std::vector<bool> present(problem.storages.size());
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    if (problem.storages[i].at_start) present[problem.root(static_cast<StorageId>(i))] = true;
  }
  return present;
}

}  // namespace

Plan pytorch_plan(const Problem& problem, Bytes max_split_size) {
  Plan plan;
  plan.order = program_order(problem);
  plan.placements = lifetimes(problem, plan.order);
  std::vector<Placement>& placements = plan.placements;

  // By position in the order; what is present at the start comes first, at 0.
  const std::vector<bool> present = present_at_start(problem);
  std::vector<std::vector<size_t>> begins(plan.order.size() + 1), ends(plan.order.size() + 1);
  for (size_t k = 0; k < placements.size(); ++k) {
    const Placement& p = placements[k];
    if (p.size == Bytes(0) || p.begin == p.end) continue;
    const bool at_start = p.storage != kNone && present[p.storage];
    begins[at_start ? 0 : p.begin + 1].push_back(k);
    ends[p.end].push_back(k);
  }

  CachingAllocator allocator(max_split_size);
  const std::vector<int32_t> streams = streams_of_storages(problem);
  const auto stream_of = [&](const Placement& p) {
    return p.storage != kNone ? streams[p.storage] : problem.operators[p.workspace_of].stream;
  };
  for (size_t t = 0; t < begins.size(); ++t) {
    for (const size_t k : begins[t]) {
      placements[k].offset = allocator.allocate(placements[k].size, stream_of(placements[k]));
    }
    for (const size_t k : ends[t]) allocator.free(placements[k].offset);
  }

  // Addresses count down from the top, where the first block begins: so the highest end is all
  // that is reserved, and what its last segment does not use is at the bottom.
  const Offset top = Offset() + allocator.reserved();
  for (const auto& of_position : begins) {
    for (const size_t k : of_position) {
      Placement& p = placements[k];
      p.offset = Offset() + (top - (p.offset + p.size));
    }
  }
  fill_figures(plan);
  return plan;
}

}  // namespace tidemark::planner
